"""Completion in real shells: the line after TAB, and the listed candidates."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "completion_shells", Path(__file__).with_name("shells.py")
)
assert spec is not None
assert spec.loader is not None
shells = importlib.util.module_from_spec(spec)
sys.modules["completion_shells"] = shells
spec.loader.exec_module(shells)


@pytest.fixture(scope="module", params=["bash", "zsh", "fish"])
def shell(request, catalog, tmp_path_factory):
    """A shell in the workspace; all tests share it and change nothing."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    home = tmp_path_factory.mktemp("home")
    shell = shells.Shell(
        request.param,
        catalog,
        {"HOME": str(home), "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": str(home / "config")},
    )
    yield shell
    shell.close()


BY_SHELL = {"bash": 0, "zsh": 1, "fish": 2}
ALIKE = [
    ("nessie swi", "nessie switch "),
    ("nessie content del", "nessie content delete "),
    ("nessie log --one", "nessie log --oneline "),
    ("nessie --no-p", "nessie --no-pager "),
    ("nessie merge --behavior f", "nessie merge --behavior force "),
    ("nessie merge --behavior=f", "nessie merge --behavior=force "),
    ("nessie --color=al", "nessie --color=always "),
    ("nessie switch m", "nessie switch main "),
    ("nessie switch fea", "nessie switch feature/"),
    ("nessie log HEAD..v", "nessie log HEAD..v1.0 "),
    ("nessie log main...feature/o", "nessie log main...feature/old "),
    ("nessie log v1.0~1", "nessie log v1.0~1 "),
    ("nessie content show d", "nessie content show db."),
    ("nessie content show db.ord", "nessie content show db.orders "),
    ("nessie content show db.s", "nessie content show db.sales."),
    ("nessie content show db.sales.i", "nessie content show db.sales.items "),
    ("nessie content history d", "nessie content history db."),
    ("nessie content history -n 3 db.ord", "nessie content history -n 3 db.orders "),
    ("nessie content delete d", "nessie content delete db."),
    ("nessie content delete web db.ord", "nessie content delete web db.orders "),
    ("nessie content rename db.ord", "nessie content rename db.orders "),
    ("nessie content put db.ord", "nessie content put db.orders "),
    ("nessie content replace db.ord", "nessie content replace db.orders "),
    ("nessie content unmodified db.ord", "nessie content unmodified db.orders "),
    ("nessie blame db.ord", "nessie blame db.orders "),
    ("nessie --json content show db.ord", "nessie --json content show db.orders "),
    (
        "NESSIE_AUTHOR=me nessie content show db.ord",
        "NESSIE_AUTHOR=me nessie content show db.orders ",
    ),
    ("nessie content list --at v1.0 é", "nessie content list --at v1.0 éclair "),
    ("nessie log -- db.ord", "nessie log -- db.orders "),
    ("nessie reset d", "nessie reset db.sales.units "),
    ("nessie merge v1.0 --resolve db.ord", "nessie merge v1.0 --resolve db.orders="),
    ("nessie merge v1.0 --resolve db.orders=ta", "nessie merge v1.0 --resolve db.orders=tables/"),
    ("nessie commit -F ta", "nessie commit -F tables/"),
    ("nessie commit -F tables/o", "nessie commit -F tables/orders.json "),
    ("nessie commit -F my", "nessie commit -F my\\ notes.txt "),
    ("nessie -C inn", "nessie -C inner/"),
    ("nessie -C inner switch ma", "nessie -C inner switch main "),
    ("nessie log -n 1 | nessie sw", "nessie log -n 1 | nessie switch "),
    ("nessie no-such-command ", "nessie no-such-command "),
]


@pytest.mark.parametrize(("typed", "completed"), ALIKE, ids=[typed for typed, _ in ALIKE])
def test_a_word_is_completed(shell, typed, completed):
    # zsh puts a backslash before a tilde, which is a pattern with extended globbing.
    assert shell.complete(typed).replace("\\~", "~") == completed


QUOTED = [
    (r"nessie content show db.\"", r"nessie content show db.\"order.lines\" "),
    ("nessie content show 'db.ord", "nessie content show 'db.orders'"),
    ("nessie content show 'db.\"", "nessie content show 'db.\"order.lines\"'"),
    ('nessie content show "db.ord', 'nessie content show "db.orders"'),
    ("nessie commit -F 'my", "nessie commit -F 'my notes.txt'"),
]


@pytest.mark.parametrize(("typed", "completed"), QUOTED, ids=[typed for typed, _ in QUOTED])
def test_the_typed_quotes_are_kept(shell, typed, completed):
    """Bash adds no space after a quote that it has closed itself."""
    assert shell.complete(typed).rstrip() == completed.rstrip()


def test_hashes_are_completed_after_an_at_sign(shell, here, said):
    hash_, subject = next((text, said) for text, said in said("log", "v1.0@").items())
    assert subject == "add éclair"
    assert shell.complete(f"nessie log {hash_[:10]}") == f"nessie log {hash_} "


def test_a_url_is_completed_after_its_colon(shell, catalog):
    start = f"nessie --store sqlite:///{catalog}"
    assert shell.complete(f"{start}/ta") == f"{start}/tables/"


def test_listed_candidates_have_descriptions(shell):
    listed = shell.listing("nessie log feature/")

    assert "feature/new-orders" in listed
    assert "only on the branch" in listed
    assert "add éclair" in listed


def test_relative_parts_have_commit_subjects(shell):
    listed = shell.listing("nessie log v1.0~")

    assert "v1.0~1" in listed.replace("\\", "")
    assert "add db.sales.items" in listed


def test_nothing_is_printed_without_a_store(shell, tmp_path):
    assert shell.complete(f"nessie -C {tmp_path} switch ma") == f"nessie -C {tmp_path} switch ma"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_files_work_in_the_folders_of_packages(name, catalog, tmp_path):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    if name == "bash" and not Path("/usr/share/bash-completion/bash_completion").exists():
        pytest.skip("bash-completion is not installed")
    files = {
        "bash": ("nessie.bash", "data/bash-completion/completions/nessie"),
        "zsh": ("_nessie", "installed/_nessie"),
        "fish": ("nessie.fish", "installed/nessie.fish"),
    }
    source, target = files[name]
    (tmp_path / target).parent.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[2] / "completions" / source, tmp_path / target)
    shell = shells.Shell(
        name,
        catalog,
        {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "LC_ALL": "C.UTF-8"},
        installed=True,
    )
    try:
        # The first keystroke only loads the file in some shells; the second one must complete.
        assert shell.complete("nessie swi") in ("nessie swi", "nessie switch ")
        assert shell.complete("nessie swi") == "nessie switch "
        assert shell.complete("nessie content show db.ord") == "nessie content show db.orders "
    finally:
        shell.close()
