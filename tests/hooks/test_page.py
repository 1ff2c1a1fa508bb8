"""The hooks of docs/guides/hooks.md work as described."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.hooks.conftest import RUN

PAGE = Path(__file__).parents[2] / "docs/guides/hooks.md"


@pytest.fixture
def scripts(tmp_path, catalog):
    """The scripts of the page, by file name; `nessie` is on their PATH."""
    program = tmp_path / "bin" / "nessie"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {RUN} "$@"\n')
    program.chmod(0o755)
    catalog.environment["PATH"] = f"{program.parent}{os.pathsep}{os.defpath}"
    found = dict(
        re.findall(
            r"Save it as `\.nessie/hooks/([\w-]+)`:\n\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL
        )
    )
    assert list(found) == ["pre-commit", "post-merge"]
    return found


@pytest.mark.skipif(shutil.which("jq", path=os.defpath) is None, reason="jq is not installed")
def test_tables_on_main_must_be_in_the_production_bucket(catalog, hooks, scripts):
    hooks.write("pre-commit", scripts["pre-commit"])

    def put(location, *more):
        return catalog(
            "content",
            "put",
            "db.new",
            "--type",
            "iceberg-table",
            "--metadata-location",
            location,
            "-m",
            "x",
            *more,
        )

    refused = put("s3://test/1.json")
    assert (refused.code, refused.err.splitlines()[0]) == (6, "outside of s3://prod/: db.new")
    catalog.ok("reset")
    assert put("s3://prod/1.json").code == 0
    assert catalog("content", "put", "web", "--type", "namespace", "-m", "x").code == 0
    assert catalog("content", "delete", "db.orders", "-m", "x").code == 0
    catalog.ok("branch", "dev")
    assert put("s3://test/1.json", "--ref", "dev").code == 0


def test_a_merge_to_main_creates_a_tag_of_its_day(dev, hooks, head, scripts):
    hooks.write("post-merge", scripts["post-merge"])
    dev.ok("merge", "dev")

    _, tag = dev.ok("tag").out.splitlines()

    assert re.match(r" +merged-\d{4}-\d\d-\d\d ", tag)
    assert head("main")[:12] in tag


def test_hooks_may_be_a_link_to_a_folder_of_the_project(catalog):
    (catalog.folder / "hooks").mkdir()
    hook = catalog.folder / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (catalog.folder / ".nessie" / "hooks").symlink_to("../hooks")

    assert catalog("content", "delete", "db.orders", "-m", "x").code == 6
