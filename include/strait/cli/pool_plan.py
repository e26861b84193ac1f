"""`strait plan --pool`: the assignment of the slots of a pool's links to Spark tasks."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from strait.cli.options import Output
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config.links import load, pool_of
from strait.control.pool import observe
from strait.planning.assignment.pools import place, tasks_for
from strait.planning.status.figures import megabytes
from strait.state.link_handle import ConfiguredLink
from strait.text import plural

_AT_ONCE = 8


def show_pool(config: Path, name: str, output: Output) -> None:
    """Print the assignment. A link whose state cannot be read is listed with the error.

    Raises:
        ConfigError: the links file is invalid, or has no such pool.
    """
    file = load(config)
    pool = pool_of(file, name, f"links file {config}")
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        found = list(workers.map(lambda link: observe(ConfiguredLink.of(file, link)), file.members(name)))
    loads = {seat: load for one in found for seat, load in one.loads.items()}
    seats = [seat for one in found for seat in one.seats]
    tasks = tasks_for(pool, len(seats), loads, 0)
    hosted = defaultdict(list)
    for seat, task in place(seats, {}, tasks, 0, loads).items():
        hosted[task].append(seat)
    errors = {one.link: one.error for one in found if one.error}
    if output.structured:
        slots = [
            {"task": task, **seat._asdict(), "bytes_per_second": loads.get(seat)}
            for task in sorted(hosted)
            for seat in sorted(hosted[task])
        ]
        output.write({"pool": name, "tasks": tasks, "slots": slots, "errors": errors})
        return
    rows = [
        [str(task), seat.link, seat.group, str(seat.slot), megabytes(loads.get(seat))]
        for task in sorted(hosted)
        for seat in sorted(hosted[task])
    ]
    echo(f"pool {name}: {plural(len(seats), 'slot')} of {plural(len(found), 'link')} in {plural(tasks, 'Spark task')}")
    plain_table([">task", "link", "group", ">slot", ">MB/s"], rows)
    for link, error in errors.items():
        echo(f"link {link}: {error}")
