//! Reports of the rounds: written whole or not at all, with the build that made them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, SpooledTempFile};

/// A report on its way to standard output stays in memory up to this size, and in a temporary file beyond it.
const IN_MEMORY: usize = 1024 * 1024;

/// Which build wrote a report: the version, and what the builder of an image says of itself, so that a stale image
/// shows.
pub(crate) fn build_id() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("DUEHOOK_BUILD") {
        Some(build) => format!("{version}+{build}"),
        None => version.to_owned(),
    }
}

/// The report would take the place of one of its inputs.
#[derive(Debug, thiserror::Error)]
#[error("--report names {0}, which is an input; name another file")]
pub(crate) struct OverInput(String);

/// Refuses a report that would take the place of one of these files.
pub(crate) fn spare(report: Option<&Path>, inputs: &[&Path]) -> Result<(), OverInput> {
    let Some(report) = report.and_then(|report| fs::canonicalize(report).ok()) else {
        return Ok(());
    };
    let taken = |input: &&&Path| fs::canonicalize(input).is_ok_and(|input| input == report);
    match inputs.iter().find(taken) {
        Some(input) => Err(OverInput(input.display().to_string())),
        None => Ok(()),
    }
}

/// A report that nobody can see yet. Dropped, it leaves nothing behind.
pub(crate) struct Draft {
    out: Out,
}

enum Out {
    /// Renamed to its place at the end.
    File {
        temp: BufWriter<NamedTempFile>,
        place: PathBuf,
    },
    /// Copied at the end: to standard output, or to what is there and is no ordinary file.
    Stream {
        spool: BufWriter<SpooledTempFile>,
        into: Option<File>,
    },
}

impl Draft {
    /// A draft of the report at `place`, or of one for standard output.
    pub(crate) fn new(place: Option<&Path>) -> io::Result<Self> {
        let spool = || BufWriter::new(SpooledTempFile::new(IN_MEMORY));
        let Some(place) = place else {
            return Ok(Self {
                out: Out::Stream {
                    spool: spool(),
                    into: None,
                },
            });
        };
        let out = match fs::metadata(place) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => Out::Stream {
                spool: spool(),
                into: Some(OpenOptions::new().write(true).open(place)?),
            },
            // A link stays a link: what it names is replaced.
            Ok(_) => Self::beside(&fs::canonicalize(place)?)?,
            Err(_) => Self::beside(place)?,
        };
        Ok(Self { out })
    }

    /// A temporary file in the same folder: a rename is atomic only within a file system.
    fn beside(place: &Path) -> io::Result<Out> {
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let temp = tempfile::Builder::new()
            .prefix(".duehook-report-")
            // As any file that a program makes; the umask takes its part.
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        Ok(Out::File {
            temp: BufWriter::with_capacity(IN_MEMORY, temp),
            place: place.to_owned(),
        })
    }

    /// Puts the report in its place, durably, or prints it.
    pub(crate) fn publish(self) -> io::Result<()> {
        match self.out {
            Out::File { temp, place } => {
                let temp = temp.into_inner().map_err(io::IntoInnerError::into_error)?;
                temp.as_file().sync_all()?;
                temp.persist(place).map_err(|error| error.error)?;
                Ok(())
            }
            Out::Stream { spool, into } => {
                let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
                spool.seek(SeekFrom::Start(0))?;
                let copied = match into {
                    Some(mut file) => io::copy(&mut spool, &mut file),
                    None => io::copy(&mut spool, &mut io::stdout().lock()),
                };
                match copied {
                    // Whoever closed the pipe has read enough.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::File { temp, .. } => temp.write(bytes),
            Out::Stream { spool, .. } => spool.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::File { temp, .. } => temp.flush(),
            Out::Stream { spool, .. } => spool.flush(),
        }
    }
}
