"""The permissions of callers, and the function that authorizes every request.

Policies do not exist yet, so a permission is a named set of actions. `authorize` already takes everything that a policy
will depend on: the actor, the action, and the affected branches.
"""

from typing import Literal, get_args

from omnigraph.errors import ConfigError, PermissionDenied
from omnigraph.records.frozen import record
from omnigraph.server.route_model import Action

Permission = Literal["read", "write", "admin"]
AuthenticationKind = Literal["open", "token", "oidc"]
_READ_ACTIONS: frozenset[Action] = frozenset({"read", "export", "invoke_query"})
_WRITE_ACTIONS: frozenset[Action] = _READ_ACTIONS | {
    "change",
    "branch_create",
    "branch_delete",
    "branch_merge",
    "schema_apply",
}
_ACTIONS: dict[Permission, frozenset[Action]] = {
    "read": _READ_ACTIONS,
    "write": _WRITE_ACTIONS,
    "admin": _WRITE_ACTIONS | {"admin", "graph_list"},
}
_DESCRIPTIONS: dict[Action, str] = {
    "read": "read the graph",
    "change": "change data",
    "export": "export the graph",
    "branch_create": "create a branch",
    "branch_delete": "delete a branch",
    "branch_merge": "merge branches",
    "schema_apply": "change the schema",
    "invoke_query": "run stored queries",
    "graph_list": "list the graphs",
    "admin": "run maintenance",
}
# An open server allows all actions on a single graph.
_OPEN_ACTIONS: frozenset[Action] = _WRITE_ACTIONS | {"admin"}


@record
class Principal:
    """An authenticated caller. On an open server, callers have no name."""

    actor: str | None
    permission: Permission
    authentication: AuthenticationKind = "token"

    @property
    def actions(self) -> frozenset[Action]:
        """The actions that the caller may take."""
        return _OPEN_ACTIONS if self.authentication == "open" else _ACTIONS[self.permission]


ANONYMOUS = Principal(None, "admin", "open")


@record
class BranchScope:
    """The branches that an action affects; both members are None if it affects no branch."""

    branch: str | None = None
    target_branch: str | None = None


NO_BRANCH = BranchScope()


def authorize(principal: Principal, action: Action, scope: BranchScope = NO_BRANCH) -> None:
    """Raise `PermissionDenied` unless the caller may take an action.

    >>> authorize(Principal("ann", "write"), "change", BranchScope("main"))
    >>> try:
    ...     authorize(Principal("bob", "read"), "change", BranchScope("main"))
    ... except PermissionDenied as error:
    ...     print(error.actor, error.action, error.branch)
    bob change main
    """
    if action not in principal.actions:
        raise PermissionDenied(
            _describe_denial(principal, action, scope),
            actor=principal.actor,
            action=action,
            branch=scope.branch,
            target_branch=scope.target_branch,
            hint=_suggest_permission(principal, action),
        )


def _describe_denial(principal: Principal, action: Action, scope: BranchScope) -> str:
    described = _DESCRIPTIONS[action]
    return PermissionDenied(
        actor=principal.actor, action=described, branch=scope.branch, target_branch=scope.target_branch
    ).message


def _suggest_permission(principal: Principal, action: Action) -> str | None:
    """Return a hint about the smallest permission that allows an action, or None on an open server."""
    required = next((name for name, actions in _ACTIONS.items() if action in actions), None)
    if required is None or principal.authentication == "open":
        return None
    facts = f"the token has the permission '{principal.permission}'"
    if principal.authentication == "oidc":
        return f"{facts}; the action requires '{required}', which the identity provider must grant"
    return f"{facts}; create a token with `omnigraph token new {principal.actor} --permission {required}`"


def parse_permission(text: str) -> Permission:
    """Return a permission by name; raise `ConfigError` for an unknown name."""
    for permission in get_args(Permission):
        if text == permission:
            return permission  # type: ignore[no-any-return]
    raise ConfigError(reason=f"unknown permission '{text}'; expected {', '.join(get_args(Permission))}")
