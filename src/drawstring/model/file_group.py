"""File groups and the slices that readers see."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FileGroupId:
    """A file group: one file id within one partition path (`""` when unpartitioned)."""

    partition_path: str
    file_id: str


@dataclass(frozen=True, slots=True)
class BaseFile:
    """A columnar base file; `path` is relative to the table, `instant` the requested time of its writer."""

    path: str
    size: int
    file_id: str
    instant: str
    write_token: str = ""

    @property
    def name(self) -> str:
        """The file name without its partition path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def extension(self) -> str:
        """`parquet`, `orc`, `hfile` or `lance`."""
        return self.path.rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file; `instant` is what its name carries (v6: the base instant, v8+: the delta commit)."""

    path: str
    size: int
    file_id: str
    instant: str
    version: int
    write_token: str = ""

    @property
    def name(self) -> str:
        """The file name without its partition path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class FileSlice:
    """What a reader sees of one file group: at most one base file and its logs in merge order."""

    group: FileGroupId
    base_instant: str
    base_file: BaseFile | None = None
    log_files: tuple[LogFile, ...] = field(default=())

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """The base file, if there is one, and the logs."""
        return (self.base_file, *self.log_files) if self.base_file else self.log_files

    @property
    def size(self) -> int:
        """Bytes of all files of the slice."""
        base = self.base_file.size if self.base_file else 0
        return base + sum(log.size for log in self.log_files)
