//! Writes records as JSON lines through one bounded channel to one thread.
//!
//! Promises: records are on their way to the disk as soon as the channel is empty, so that a killed
//! load loses at most the last few; a full channel slows the senders down instead of growing; a failed
//! write closes the channel, because a load without its history is worth nothing.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use tokio::sync::mpsc::{self, Receiver, Sender, error::TryRecvError};

use super::Record;

/// Records that may wait for the disk before the senders do.
const QUEUE_RECORDS_MAX: usize = 4096;

/// Why a history could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file could not be created or written.
    #[error("cannot write the history {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The writer's thread ended without a result.
    #[error("the writer of the history {} died", path.display())]
    Died {
        /// The file.
        path: PathBuf,
    },
}

/// The history is closed: the writer failed. [`Writer::finish`] says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the history cannot be written any more")]
pub struct Closed;

/// Hands records to the writer; cheap to clone.
#[derive(Debug, Clone)]
pub struct Recorder {
    queue: Sender<Entry>,
}

#[derive(Debug)]
enum Entry {
    Record(Box<Record>),
    End,
}

impl Recorder {
    /// Hands over one record; waits while the queue is full.
    ///
    /// # Cancel safety
    /// A dropped call may have handed over nothing.
    pub async fn record(&self, record: Record) -> Result<(), Closed> {
        self.queue.send(Entry::Record(Box::new(record))).await.map_err(|_| Closed)
    }
}

/// Owns the file and the thread.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    queue: Sender<Entry>,
    thread: JoinHandle<io::Result<u64>>,
}

impl Writer {
    /// Creates (or empties) the file and starts the thread.
    pub fn create(path: &Path) -> Result<(Recorder, Self), WriteError> {
        let io_error = |source| WriteError::Io { path: path.to_owned(), source };
        let file = File::create(path).map_err(io_error)?;
        let (queue, entries) = mpsc::channel(QUEUE_RECORDS_MAX);
        let thread = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || write_all(entries, BufWriter::new(file)))
            .map_err(io_error)?;
        Ok((Recorder { queue: queue.clone() }, Self { path: path.to_owned(), queue, thread }))
    }

    /// Waits until every record handed over so far is written and returns how many there were. Later
    /// ones are refused.
    ///
    /// # Cancel safety
    /// The thread goes on; what it was given gets written.
    pub async fn finish(self) -> Result<u64, WriteError> {
        let Self { path, queue, thread } = self;
        // Refused means that the thread has ended; its result says why.
        drop(queue.send(Entry::End).await);
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        match joined {
            Ok(Ok(result)) => result.map_err(|source| WriteError::Io { path, source }),
            _ => Err(WriteError::Died { path }),
        }
    }
}

fn write_all(mut entries: Receiver<Entry>, mut file: BufWriter<File>) -> io::Result<u64> {
    let mut written = 0;
    loop {
        let next = match entries.try_recv() {
            Ok(entry) => Some(entry),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                file.flush()?;
                entries.blocking_recv()
            }
        };
        let Some(Entry::Record(record)) = next else { break };
        serde_json::to_writer(&mut file, &record)?;
        file.write_all(b"\n")?;
        written += 1;
    }
    file.flush()?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{read, test_record};

    #[tokio::test]
    async fn what_is_recorded_is_read_back() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("history.jsonl");
        let (recorder, writer) = Writer::create(&path).expect("a file");
        let wanted: Vec<_> = (0..10_000).map(|attempt| Record { attempt, ..test_record() }).collect();
        for record in &wanted {
            recorder.record(record.clone()).await.expect("an open history");
        }
        assert_eq!(writer.finish().await.expect("written"), 10_000);
        assert_eq!(read(&path).expect("readable"), wanted);
    }

    #[tokio::test]
    async fn a_full_disk_closes_the_history() {
        let path = Path::new("/dev/full");
        let (recorder, writer) = Writer::create(path).expect("the device opens");
        while recorder.record(test_record()).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert!(matches!(writer.finish().await, Err(WriteError::Io { .. })));
    }

    #[test]
    fn a_torn_line_is_an_error_with_its_number() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("torn.jsonl");
        let whole = serde_json::to_string(&test_record()).expect("json");
        std::fs::write(&path, format!("{whole}\n{}", &whole[..20])).expect("written");
        let error = read(&path).expect_err("torn").to_string();
        assert!(error.starts_with("line 2 "), "{error}");
    }
}
