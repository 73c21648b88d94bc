import pytest

from tests.resqu.speaking import Direct


@pytest.fixture
def direct() -> Direct:
    return Direct()
