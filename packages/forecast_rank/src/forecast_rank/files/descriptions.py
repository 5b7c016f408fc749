"""Folders of table files in two standards: Frictionless `datapackage.json` and Croissant `croissant.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Column(Protocol):
    """A column; `kind` is a key of FIELD_TYPES, `references` names a `table.column`."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def references(self) -> str | None: ...


class Table(Protocol):
    """A table; its first column identifies a row if its name is one of KEYS."""

    @property
    def name(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def columns(self) -> Sequence[Column]: ...


@dataclass(frozen=True, slots=True)
class Dataset:
    """Facts about the whole; `license` is an SPDX id."""

    name: str
    title: str
    summary: str
    url: str
    creator: str
    license: str
    license_url: str
    terms: str


CSV = "csv"
KEYS = ("id", "number")
Files = Mapping[str, Mapping[str, Any]]
"""Hash, size and rows by relative path, as in the manifest."""
FIELD_TYPES = {
    "integer": "integer", "number": "number", "decimal": "number", "boolean": "boolean", "time": "datetime",
    "text": "string", "json": "any",
}  # fmt: skip
CROISSANT_TYPES = {
    "integer": "sc:Integer", "number": "sc:Float", "decimal": "sc:Float", "boolean": "sc:Boolean",
    "time": "sc:DateTime", "text": "sc:Text", "json": "sc:Text",
}  # fmt: skip
MEDIA_TYPES = {CSV: "text/csv", "parquet": "application/vnd.apache.parquet"}
CROISSANT_CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/", "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/", "citeAs": "cr:citeAs", "column": "cr:column", "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"}, "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty", "samplingRate": "cr:samplingRate",
    "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract", "field": "cr:field",
    "fileProperty": "cr:fileProperty", "fileObject": "cr:fileObject", "fileSet": "cr:fileSet", "format": "cr:format",
    "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath", "key": "cr:key",
    "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path", "recordSet": "cr:recordSet",
    "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated", "replace": "cr:replace",
    "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField", "transform": "cr:transform",
}  # fmt: skip
"""The context that the standard prescribes (Croissant 1.0, appendix 1)."""


def data_package(
    dataset: Dataset, tables: Sequence[Table], files: Files, format: str, *, at: str, whole: bool
) -> dict[str, Any]:
    """The contents of `datapackage.json`. Only a whole archive has every row that a foreign key names."""
    return {
        "profile": "tabular-data-package" if format == CSV else "data-package",
        "name": dataset.name,
        "title": dataset.title,
        "description": f"{dataset.summary} Terms: {dataset.terms}",
        "created": at,
        "licenses": [{"name": dataset.license, "path": dataset.license_url, "title": dataset.terms}],
        "resources": [
            {
                "profile": "tabular-data-resource" if format == CSV else "data-resource",
                "name": table.name,
                "description": table.meaning,
                "path": path,
                "format": format,
                "mediatype": MEDIA_TYPES[format],
                "encoding": "utf-8",
                "bytes": files[path]["bytes"],
                "hash": f"sha256:{files[path]['sha256']}",
                "schema": _table_schema(table, whole=whole),
            }
            for table in tables
            for path in [f"{format}/{table.name}.{format}"]
        ],
    }


def _table_schema(table: Table, *, whole: bool) -> dict[str, Any]:
    keys = [
        {"fields": column.name, "reference": {"resource": target, "fields": key}}
        for column in table.columns
        if column.references
        for target, key in [column.references.split(".")]
    ]
    return {
        "fields": [_field(column) for column in table.columns],
        "missingValues": [""],
        **({"primaryKey": table.columns[0].name} if table.columns[0].name in KEYS else {}),
        **({"foreignKeys": keys} if keys and whole else {}),
    }


def _field(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": FIELD_TYPES[column.kind],
        "description": column.meaning,
        **({"format": "%Y-%m-%dT%H:%M:%S.%fZ"} if column.kind == "time" else {}),
        **({"unit": column.unit} if column.unit else {}),
    }


def croissant(dataset: Dataset, tables: Sequence[Table], files: Files, format: str, *, at: str) -> dict[str, Any]:
    """The contents of `croissant.json` (version 1.0)."""
    return {
        "@context": CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": dataset.name,
        "description": dataset.summary,
        "url": dataset.url,
        "version": "1.0.0",
        "datePublished": at,
        "license": dataset.license_url,
        "usageInfo": dataset.terms,
        "citeAs": f"{dataset.title}, archive of {at}; name the SHA-256 of manifest.json.",
        "creator": {"@type": "sc:Organization", "name": dataset.creator},
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": path,
                "name": path,
                "contentUrl": path,
                "contentSize": f"{files[path]['bytes']} B",
                "encodingFormat": "text/csv" if format == CSV else "application/x-parquet",
                "sha256": files[path]["sha256"],
            }
            for path in (f"{format}/{table.name}.{format}" for table in tables)
        ],
        "recordSet": [_record_set(table, f"{format}/{table.name}.{format}") for table in tables],
    }


def _record_set(table: Table, path: str) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.meaning,
        **({"key": {"@id": f"{table.name}/{table.columns[0].name}"}} if table.columns[0].name in KEYS else {}),
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table.name}/{column.name}",
                "name": f"{table.name}/{column.name}",
                "description": f"{column.meaning} ({column.unit})" if column.unit else column.meaning,
                "dataType": CROISSANT_TYPES[column.kind],
                "source": {"fileObject": {"@id": path}, "extract": {"column": column.name}},
                **(
                    {"references": {"field": {"@id": column.references.replace(".", "/")}}} if column.references else {}
                ),
            }
            for column in table.columns
        ],
    }
