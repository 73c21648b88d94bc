"""What verbs take that work on the pipeline's tables, and where these and the lake are."""

from pathlib import Path
from typing import Any

import click

from crossdock.cli.control import OperatorCommand, settings_of
from crossdock.cli.filters import Seconds
from crossdock.lake.manifest import expect
from crossdock.pipeline.environment import expect_plain
from crossdock.pipeline.errors import in_words
from crossdock.server.lake_keeper import folder_of


class TablesCommand(OperatorCommand):
    """A verb that works on the tables, and knows where they and the lake are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        folder = click.Path(path_type=Path, file_okay=False)
        self.params += [
            click.Option(
                ["--lake"], type=folder, metavar="DIR", help="The lake; without it the one the settings name."
            ),
            click.Option(
                ["--tables"], type=folder, metavar="DIR", help="The tables; without it `tables` in the data folder."
            ),
        ]


class SparkCommand(TablesCommand):
    """And one that needs Spark for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--master"],
                default="",
                metavar="URL",
                help="Where Spark runs: local[N], spark://…, sc://…. Without it spark-submit's, or this machine.",
            ),
            click.Option(["--conf"], multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."),
            click.Option(
                ["--cds"],
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="An archive of Java classes that halves Spark's start; made at the end of the first run with it.",
            ),
            click.Option(
                ["--wait"],
                type=Seconds(0, 86_400),
                default=600.0,
                metavar="SECONDS",
                help="How long to wait for another process that writes the tables. [600]",
            ),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        with in_words("Spark failed, and nothing is half done: start it again when that is mended"):
            return super().invoke(ctx)


def folders(values: dict[str, Any], *, lake_needed: bool = True) -> tuple[Path, Path]:
    """Lake and tables. Raises NoLake, Damaged if the lake's own word is gone, or PipelineError if Spark could not read
    from folders of these names."""
    named, tables = values.pop("lake"), values.pop("tables")
    settings = settings_of(values).settings
    lake = named or folder_of(settings)
    if named or lake_needed:
        expect(lake, None if named else settings.server.data)
    tables = tables or settings.server.data / "tables"
    for folder in (lake, tables):
        expect_plain(folder)
    return lake.absolute(), tables
