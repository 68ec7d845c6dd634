"""Tables of Stata, SPSS and SAS, some rows at a time, by pyreadstat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow

from dfeas.data.storage.places import Place
from dfeas.errors import BadInputError, UsageError, install

READERS = {".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".sas7bdat": "read_sas7bdat"}


class StatisticsColumns:
    """The columns of such a file: numbers as they are stored, also where values have labels; ``text`` is these labels."""

    def __init__(self, path: Place, text: Sequence[str] = ()) -> None:
        try:
            import pyreadstat
        except ImportError:
            raise UsageError(f"{path.suffix} is read by pyreadstat, which is not installed: {install('statistics')}") from None
        self.where, self._text, self._errors = str(path), text, (pyreadstat.ReadstatError, pyreadstat.PyreadstatError)
        self._call = getattr(pyreadstat, READERS[path.suffix])
        _, about = self._read(metadataonly=True)
        self.columns, kinds = list(about.column_names), about.readstat_variable_types
        self._strings = {name for name, kind in kinds.items() if kind == "string"}
        self._labels: dict[str, dict[Any, str]] = about.variable_value_labels
        named = [name for name in self.columns if name in self._labels and name not in text]
        self.notes: Sequence[str] = [f"{', '.join(named)}: numbers as stored, though values have labels"] if named else []

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        first, wanted = 0, list(dict.fromkeys(columns))
        while True:
            values, _ = self._read(usecols=wanted, row_offset=first, row_limit=rows, output_format="dict")
            count = len(next(iter(values.values()), ()))
            if count:
                yield pyarrow.RecordBatch.from_pydict({name: self._column(name, values[name]) for name in wanted})
            if count < rows:
                return
            first += count

    def _read(self, **how: Any) -> Any:
        try:
            return self._call(self.where, **how)
        except (*self._errors, UnicodeDecodeError) as error:
            raise BadInputError(f"{self.where}: pyreadstat cannot read it: {error}") from None

    def _column(self, name: str, values: Any) -> Any:
        """Empty text is missing."""
        if name in self._text:
            known = self._labels.get(name, {})
            values = [None if each is None or each != each else known.get(each, str(each)) for each in values]
        if name in self._text or name in self._strings:
            return pyarrow.array([each or None for each in values], pyarrow.string())
        found = pyarrow.array(values, from_pandas=True)  # dates, which are refused by name, stay what they are
        return found if pyarrow.types.is_temporal(found.type) else found.cast(pyarrow.float64())
