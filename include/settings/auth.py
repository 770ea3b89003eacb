"""The settings of who may call a node."""

from pydantic import Field

from include.settings.groups import SettingsGroup, named_variable

NONE = "none"


class AuthSettings(SettingsGroup):
    """Who may call a node. mode: none, or how callers prove who they are."""

    mode: str = Field(default=NONE, json_schema_extra=named_variable("auth"))

    @property
    def is_on(self) -> bool:
        """Whether a node answers only callers that it knows."""
        return self.mode != NONE
