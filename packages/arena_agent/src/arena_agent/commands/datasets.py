"""`dataset` writes a dataset as a folder for an upload to Hugging Face."""

import argparse
from pathlib import Path

from arena_agent.commands import OK, REFUSED, CommandFailed, show


def write_hub_dataset(options: argparse.Namespace) -> int:
    from arena_agent.arena_api import AccessDenied
    from arena_agent.dataset import InvalidDataset
    from arena_agent.download import DownloadFailed, open_dataset

    try:
        import polars  # noqa: F401 - the extra is named before any work is done
    except ImportError:
        raise CommandFailed("dataset needs the extra: pip install 'arena-agent[evaluate]'", REFUSED) from None
    from arena_agent.hub import write_hub_folder

    try:
        dataset = open_dataset(options.data, options.url)
        name = str(dataset.manifest.get("name") or Path(options.data.rstrip("/")).name)
        paths = write_hub_folder(dataset, options.out, name)
    except InvalidDataset as error:
        raise CommandFailed(str(error), REFUSED) from None
    except (DownloadFailed, AccessDenied, OSError) as error:
        raise CommandFailed(str(error)) from None
    files = [path.name for path in paths]
    text = (
        f"wrote {', '.join(files)} into {options.out}; to read them: load_dataset({str(options.out)!r}, 'forecasts'); "
        f"to upload them: hf upload YOUR_NAME/{name} {options.out} --repo-type dataset"
    )
    show(options, {"out": str(options.out), "files": files, "sha256": dataset.sha256}, text)
    return OK
