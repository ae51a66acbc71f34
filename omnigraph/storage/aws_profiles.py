"""The shared AWS configuration: `~/.aws/config` and `~/.aws/credentials`.

This module reads the static keys, the region and the endpoint from one profile. It does not run programs or send
requests, so it rejects profiles that need a role, a single sign-on session or a credential process. Secrets never
appear in errors.
"""

from collections.abc import Mapping
from pathlib import Path

from omnigraph.errors import StorageError

_CREDENTIAL_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_DYNAMIC_KEYS = ("role_arn", "sso_session", "sso_start_url", "credential_process", "web_identity_token_file")
_DEFAULT_PROFILE = "default"


def read_aws_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for the selected profile, under the names that Lance uses.

    The environment selects the profile. If the environment also contains keys, keys in the files are ignored. A missing
    file is treated as empty.
    """
    explicit_profile = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    profile = explicit_profile or _DEFAULT_PROFILE
    config = _read_sections(_find_file(environment, "AWS_CONFIG_FILE", "config"))
    credentials = _read_sections(_find_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials"))
    config_section = config.get(profile if profile == _DEFAULT_PROFILE else f"profile {profile}")
    credentials_section = credentials.get(profile)
    has_ambient_keys = bool(environment.get("AWS_ACCESS_KEY_ID"))
    if config_section is None and credentials_section is None:
        if explicit_profile is None or has_ambient_keys:
            return {}
        raise _profile_error(f"AWS profile '{profile}' is not defined", "check AWS_PROFILE and ~/.aws/config")
    members = {**(config_section or {}), **(credentials_section or {})}
    keys = {} if has_ambient_keys else {name: members[name] for name in _CREDENTIAL_KEYS if members.get(name)}
    if explicit_profile is not None and not has_ambient_keys:
        _require_static_keys(profile, members)
    settings = {"aws_region": members.get("region"), "aws_endpoint": _find_endpoint(config, members)}
    return keys | {name: value for name, value in settings.items() if value}


def _find_file(environment: Mapping[str, str], variable: str, file_name: str) -> Path | None:
    explicit_path, home = environment.get(variable), environment.get("HOME")
    if explicit_path:
        return Path(explicit_path).expanduser()
    return Path(home, ".aws", file_name) if home else None


def _read_sections(path: Path | None) -> dict[str, dict[str, str]]:
    import configparser

    if path is None:
        return {}
    parser = configparser.RawConfigParser(default_section="", strict=False, allow_no_value=True)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise _profile_error(f"cannot read {path}: {error.strerror}", "check the file's permissions") from error
    except (configparser.Error, UnicodeDecodeError) as error:
        position = f":{error.lineno}" if isinstance(error, configparser.MissingSectionHeaderError) else ""
        reason = f"{path}{position} is not a valid AWS configuration file"
        raise _profile_error(reason, "see `aws configure`") from None
    return {
        " ".join(section.split()): {name: value or "" for name, value in parser.items(section)}
        for section in parser.sections()
    }


def _require_static_keys(profile: str, members: Mapping[str, str]) -> None:
    dynamic_keys = [name for name in _DYNAMIC_KEYS if members.get(name)]
    if members.get("aws_access_key_id") or not dynamic_keys:
        return
    raise _profile_error(
        f"AWS profile '{profile}' uses {dynamic_keys[0]}, which is not supported",
        'run eval "$(aws configure export-credentials --format env)" first',
    )


def _find_endpoint(config: Mapping[str, Mapping[str, str]], members: Mapping[str, str]) -> str | None:
    """Return the S3 endpoint from the services section of the profile or, if there is none, from the profile itself."""
    services = config.get(f"services {members.get('services', '')}", {})
    for line in services.get("s3", "").splitlines():
        name, _, value = (part.strip() for part in line.partition("="))
        if name == "endpoint_url":
            return value
    return members.get("endpoint_url")


def _profile_error(reason: str, hint: str) -> StorageError:
    return StorageError(kind="configuration", reason=reason, effect="none", hint=hint)
