"""Outputs are apart from data, however their places are spelled."""

from itertools import product

import pytest

from dfeas.data.storage.places import require_apart
from dfeas.errors import UsageError

SAME = {
    "s3://bucket": ["s3://bucket"],
    "gs://bucket": ["gs://bucket", "gcs://bucket"],
    "az://box": ["az://box", "abfs://box", "abfss://box@account.dfs.core.windows.net"],
}
"""Spellings of a bucket."""
SPELLED = ("/{}", "//{}", "/{}/", "/{}//", "/./{}", "/x/../{}", "/../{}", "//x//..//{}/.")
"""Of a key."""


@pytest.mark.parametrize("bucket", SAME)
def test_outputs_within_data_are_refused_however_they_are_spelled(bucket: str) -> None:
    for root, form, other in product(SAME[bucket], SPELLED, SPELLED):
        data = root + form.format("data")
        for out in ("data", "data/run", "data//run", "data/./run", "data/run/../../data/run", "other/../data"):
            with pytest.raises(UsageError, match=r"it is the data|or around it"):
                require_apart(bucket + other.format(out), data)
            with pytest.raises(UsageError, match=r"it is the data|or around it"):
                require_apart(data, bucket + other.format(out))
        for out in ("database", "data2/run", "data/../run", "da", "other/data"):
            require_apart(bucket + other.format(out), data)
    require_apart("s3://another/data/run", f"{bucket}/data")
    require_apart("data/run", f"{bucket}/data")
