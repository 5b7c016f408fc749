"""The table of forgeries: each is named by `verify_export` and by the archive's own program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scoring.exports.verification.verifier import verify_archive
from tests.scoring.exports.forgeries import FORGERIES, OF_VERIFY_EXPORT, Forgery
from tests.scoring.exports.forgery import keep_csv_alone, rewrite, standalone_violations
from tests.selection import one_per_rule

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.own_database]


def rule(forgery: Forgery) -> str:
    return forgery.sentence if forgery.sentence in OF_VERIFY_EXPORT else forgery.table


@pytest.mark.parametrize("forgery", one_per_rule([(row,) for row in FORGERIES], lambda case: rule(case[0])))
def test_forgery_whose_hashes_were_put_right_is_named(copy: Callable[[str], Path], forgery: Forgery) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    rewrite(folder, forgery.table, forgery.change, record=True)
    violations, alone = verify_archive(folder).violations, standalone_violations(folder)
    assert any(forgery.sentence in line for line in violations), violations
    assert not any("record of this archive" in line for line in violations), violations
    if forgery.sentence in OF_VERIFY_EXPORT:
        assert [line for line in alone if not line.startswith("anchor.json: ")], alone
    else:
        assert any(forgery.sentence in line for line in alone), alone
