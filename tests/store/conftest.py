import pytest

pytest.register_assert_rewrite("bullpen.testing.store_contract")
