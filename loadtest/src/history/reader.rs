//! Reads a history file back, strictly: a line that is not a record is an error, not skipped.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use super::Record;

/// Why a history could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read the history {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a record, for instance because the writer was killed in the middle of it.
    #[error("line {line} of the history {} is not a record", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

/// All records of a history file, in the order in which they were written (that of completion).
pub fn read(path: &Path) -> Result<Vec<Record>, ReadError> {
    let io_error = |source| ReadError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io_error)?;
    let mut records = Vec::new();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(io_error)?;
        if line.is_empty() {
            continue;
        }
        let record = serde_json::from_str(&line).map_err(|source| ReadError::Line {
            path: path.to_owned(),
            line: index + 1,
            source,
        })?;
        records.push(record);
    }
    Ok(records)
}
