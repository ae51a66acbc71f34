"""Shared AWS configuration files: which settings are used, and what the environment overrides."""

from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.root import parse_root, s3_options

CONFIG = """
[default]
region = eu-west-1

[profile lab]
region = eu-north-1
endpoint_url = http://lab:9000
aws_access_key_id = config-key
aws_secret_access_key = config-secret

[profile shop]
services = near
region = eu-central-1

[services near]
s3 =
  endpoint_url = http://shop:9000
dynamodb =
  endpoint_url = http://elsewhere

[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = default
"""
CREDENTIALS = """
[default]
aws_access_key_id = default-key
aws_secret_access_key = hush
[lab]
aws_access_key_id=lab-key
aws_secret_access_key=hush%hush
aws_session_token=token
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "config").write_text(CONFIG)
    (folder / "credentials").write_text(CREDENTIALS)
    return {"HOME": str(tmp_path)}


def options(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in s3_options(environment).items() if name.startswith("aws_")}


def test_default_profile_gives_keys_and_region(home: dict[str, str]) -> None:
    assert options(home) == {
        "aws_region": "eu-west-1",
        "aws_access_key_id": "default-key",
        "aws_secret_access_key": "hush",
    }


@pytest.mark.parametrize("variable", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
def test_variable_selects_a_profile_and_credentials_win_over_config(home: dict[str, str], variable: str) -> None:
    assert options(home | {variable: "lab"}) == {
        "aws_region": "eu-north-1",
        "aws_access_key_id": "lab-key",
        "aws_secret_access_key": "hush%hush",
        "aws_session_token": "token",
        "aws_endpoint": "http://lab:9000",
    }


def test_services_section_gives_the_endpoint(home: dict[str, str]) -> None:
    assert options(home | {"AWS_PROFILE": "shop"})["aws_endpoint"] == "http://shop:9000"


def test_environment_wins_and_keys_are_never_mixed(home: dict[str, str]) -> None:
    ambient = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL_S3": "http://e"}
    assert options(home | {"AWS_PROFILE": "lab", "AWS_REGION": "us-east-1"} | ambient) == {
        "aws_region": "us-east-1",
        "aws_access_key_id": "mine",
        "aws_secret_access_key": "x",
        "aws_endpoint": "http://e",
    }
    assert options(home | {"AWS_DEFAULT_REGION": "us-west-2"})["aws_region"] == "us-west-2"
    root = parse_root("s3://lake/g", home | {"AWS_PROFILE": "lab"}, {"region": "x", "access_key_id": "y"})
    assert (root.options["aws_region"], root.options["aws_access_key_id"]) == ("x", "y")


def test_files_may_be_elsewhere_or_absent(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "c").write_text("[default]\nregion = there\n")
    moved = home | {"AWS_CONFIG_FILE": str(tmp_path / "c"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    assert options(moved) == {"aws_region": "there"}
    assert options({"HOME": str(tmp_path / "nobody")}) == options({}) == {}


@pytest.mark.parametrize(
    ("profile", "message"),
    [("nobody", "AWS profile 'nobody' is not defined"), ("role", "AWS profile 'role' uses role_arn")],
)
def test_unusable_profile_is_refused(home: dict[str, str], profile: str, message: str) -> None:
    with pytest.raises(StorageError, match=message) as caught:
        s3_options(home | {"AWS_PROFILE": profile})
    assert caught.value.kind == "configuration"
    assert s3_options(home | {"AWS_PROFILE": profile, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"})


def test_malformed_file_is_refused_without_its_content(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".aws" / "credentials").write_text("aws_secret_access_key = hush\n")
    with pytest.raises(StorageError, match="credentials:1 is not a valid AWS configuration file") as caught:
        s3_options(home)
    assert "hush" not in str(caught.value)
