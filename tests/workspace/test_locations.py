"""The folders of the user are those of platformdirs."""

import platformdirs
import pytest

from nessie_cli.workspace import locations


@pytest.mark.parametrize("is_set", [False, True])
def test_the_folders_are_those_of_platformdirs(
    tmp_path, monkeypatch: pytest.MonkeyPatch, *, is_set: bool
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_STATE_HOME"):
        if is_set:
            monkeypatch.setenv(name, str(tmp_path / name))
        else:
            monkeypatch.delenv(name, raising=False)

    assert locations.user_config() == platformdirs.user_config_path("nessie") / "config.toml"
    assert locations.system_config() == platformdirs.site_config_path("nessie") / "config.toml"
    assert locations.state() == platformdirs.user_state_path("nessie")
