//! Reports: `report.json` for machines, a table for the terminal, a page with plots that opens offline.

pub mod html;
pub mod machine;
pub mod model;
mod plots;
pub mod stats;
pub mod table;

use std::io;
use std::path::{Path, PathBuf};

pub use model::{Report, RunReport};

/// Where a report was written.
#[derive(Debug, Clone)]
pub struct ReportPaths {
    /// The JSON document.
    pub json: PathBuf,
    /// The page.
    pub html: PathBuf,
}

/// The report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file could not be written.
    #[error("writing {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A plot could not be drawn.
    #[error("drawing the plots of run {run}: {reason}")]
    Plot {
        /// Name of the run.
        run: String,
        /// Why.
        reason: String,
    },
}

/// Writes `report.json` and `report.html` into a folder.
pub fn write(folder: &Path, report: &Report) -> Result<ReportPaths, WriteError> {
    let paths = ReportPaths { json: folder.join("report.json"), html: folder.join("report.html") };
    let json = serde_json::to_string_pretty(report).map_err(io::Error::from);
    put(&paths.json, json)?;
    put(&paths.html, Ok(html::page(report)?))?;
    Ok(paths)
}

fn put(path: &Path, text: io::Result<String>) -> Result<(), WriteError> {
    text.and_then(|text| std::fs::write(path, text))
        .map_err(|source| WriteError::File { path: path.to_owned(), source })
}

#[cfg(test)]
pub(crate) mod sample;
