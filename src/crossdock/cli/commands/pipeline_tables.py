"""`crossdock pipeline status|add|skip|check|register`: look at the tables and their lakes, and name them for others."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from crossdock.cli.commands.pipeline import EXAMPLES, OpenedTables
from crossdock.cli.output import meter, note, print_json
from crossdock.cli.pipeline_options import SparkCommand, TablesCommand, end_session, locations, needs_spark, session
from crossdock.cli.render.tables import columns, size, some
from crossdock.lake.location import absolute
from crossdock.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from crossdock.pipeline.status import Status


@click.command("status", cls=TablesCommand, epilog=EXAMPLES)
def status(as_json: bool, **values: Any) -> int:
    """Show the tables, and how far they are behind each lake.

    Starts no Spark and changes nothing. Exit code 1 if a lake cannot be read.
    """
    from crossdock.pipeline.catalog import Tables
    from crossdock.pipeline.status import status as status_of

    where = locations(values)
    found = status_of(Tables(where.tables), where.lake)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        click.echo(_text(found))
    return 1 if any(lake.problem for lake in found.lakes) else 0


def _text(found: "Status") -> str:
    lines = []
    for lake in found.lakes:
        behind = f"{some(lake.waiting_rows, 'event')} of {some(lake.waiting, 'file')}, {size(lake.waiting_bytes)}"
        state = lake.problem or (behind + " waiting" if lake.waiting else "up to date")
        lines.append(f"{lake.server or '?'}: {state}  ({lake.location})")
    lines += [
        "",
        columns(
            ("TABLE", ">ROWS", ">FILES", ">SIZE", "FROM", "TO"),
            [
                (each.name, f"{each.rows:,}", f"{each.files:,}", size(each.bytes), str(each.first or "-"),
                 str(each.last or "-"))
                for each in found.tables
            ],
        ),
    ]  # fmt: skip
    lines += [f"left out: {each.path} of {each.server}, {some(each.rows, 'event')}: {each.reason}"
              for each in found.skipped]  # fmt: skip
    return "\n".join(lines)


@click.command("add", cls=TablesCommand, epilog=EXAMPLES)
@click.argument("location")
def add_lake(location: str, as_json: bool, **values: Any) -> None:
    """Add the lake of another server to the tables.

    LOCATION is a folder or URL. From now on every run and stream ingests its events too. The column `server` tells the
    servers apart, so each needs a name of its own (`server.name`).
    """
    from crossdock.lake.table import expect
    from crossdock.pipeline.catalog import Tables
    from crossdock.pipeline.lakes import add_lake as add

    where = locations(values, lake_needed=False)
    expect(absolute(location))
    tables = Tables(where.tables)
    tables.create()
    lake, new = add(tables["lakes"], absolute(location))
    if as_json:
        print_json({"id": lake.id, "server": lake.server, "location": lake.location, "new": new})
    else:
        click.echo(f"{'added' if new else 'known already:'} the lake of {lake.server} in {lake.location}")


@click.command("skip", cls=TablesCommand, epilog=EXAMPLES)
@click.argument("path")
def skip(path: str, as_json: bool, **values: Any) -> None:
    """Leave out a damaged file of a lake.

    PATH is the path that the error named. Its events are missing from the tables until the file is restored and
    crossdock pipeline rebuild has run.
    """
    from crossdock.pipeline.lakes import skip as leave_out
    from crossdock.pipeline.segment_checks import fault_of

    opened = OpenedTables(locations(values))
    for lake in opened.lakes:
        inside = path.removeprefix(lake.location.rstrip("/") + "/")
        if any(file.path == inside for file in lake.files()):
            reason = fault_of(f"{lake.location}/{inside}")
            if not reason:
                raise PipelineError(f"{path} is not damaged; there is no reason to leave it out")
            leave_out(opened.tables, lake, inside, reason)
            if as_json:
                print_json({"lake": lake.id, "path": inside, "reason": reason})
            else:
                click.echo(f"left out {inside}: {reason}")
            return
    raise PipelineError(f"no lake of these tables has a file {path}")


@click.command("check", cls=TablesCommand, epilog=EXAMPLES)
def check(as_json: bool, **values: Any) -> int:
    """Check that the tables agree with the lakes and with each other.

    Counts agree with the lakes, keys are unique, and no wait is negative. Reads all tables. Starts no Spark and changes
    nothing. Exit code 1 if a check fails.
    """
    from crossdock.lake.table import Lake
    from crossdock.pipeline.catalog import Tables
    from crossdock.pipeline.lakes import known_lakes
    from crossdock.pipeline.quality import faults_of

    with meter(lines=True) as progress:
        progress("checking tables", 0, 1)
        tables = Tables(locations(values, lake_needed=False).tables)
        tables["lakes"].handle()  # there are tables
        faults = faults_of(tables, [Lake.open(each.location) for each in known_lakes(tables["lakes"])])
    if as_json:
        print_json({"faults": faults})
    elif not faults:
        click.echo("all checks passed")
    for fault in faults:
        note(fault)
    return 1 if faults else 0


@click.command("register", cls=SparkCommand, epilog=EXAMPLES)
@click.option(
    "--catalog",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder of the catalog, created if it is missing. Default: `catalog` in the data folder.",
)
@click.option("--database", default="crossdock", metavar="NAME", help="Database for the tables. [crossdock]")
def register(catalog: Path | None, database: str, as_json: bool, **values: Any) -> None:
    """Name the tables in a persistent Spark catalog.

    Other sessions can then query them, as in SELECT … FROM crossdock.hourly. Once is enough: a query reads the newest
    version of a table. Run it again if the tables have moved, or after an upgrade that adds columns. To use a Hive
    metastore server, add --conf spark.hadoop.hive.metastore.uris=thrift://….
    """
    needs_spark()
    from crossdock.pipeline.spark_catalog import catalog_conf, register_catalog

    where = locations(values, lake_needed=False)
    folder = Path(absolute(catalog or where.settings.server.data / "catalog"))
    own = not values["master"].startswith("sc://")  # a Connect server has its own catalog
    if own:
        values["conf"] = (*(f"{key}={value}" for key, value in catalog_conf(folder).items()), *values["conf"])
    with meter(lines=True) as progress:
        spark = session(values, progress, small=True)
        progress("registering tables", 0, 1)
        names = register_catalog(spark, where.tables, database)
        end_session(spark)
    if as_json:
        print_json({"database": database, "tables": names, "catalog": str(folder) if own else values["master"]})
    else:
        place = f"the catalog in {folder}" if own else "the catalog of the Connect server"
        click.echo(f"{some(len(names), 'table')} in {place}: SELECT * FROM {database}.hourly")
