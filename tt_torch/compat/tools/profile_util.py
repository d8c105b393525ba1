"""Old names: `tt_torch.tools.profile_util`."""

from tt_torch.errors import NoCounterpartError
from tt_torch.profiling.tables import CSV_NAME

__all__ = ["Profiler"]


class Profiler:
    """The name of the CSV file. tt-torch's object drives Tracy's capture tools, which nothing needs here."""

    DEFAULT_OUTPUT_FILENAME = CSV_NAME

    def __init__(self, *arguments: object, **named: object) -> None:
        raise NoCounterpartError(
            "tt_torch.tools.profile_util.Profiler",
            "Use tt_torch.tools.tt_profile.tt_profile or the command tt-torch profile.",
        )
