//! ZooKeeper's four-letter words: a word in, text out, the end of the connection ends it.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// A server that is paused accepts connections and never answers.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn ask(server: SocketAddr, word: &str) -> io::Result<String> {
    let conversation = async {
        let mut stream = TcpStream::connect(server).await?;
        stream.write_all(word.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let late =
        |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, conversation).await.map_err(late)?
}

/// The number that belongs to a name in the answer to `mntr`.
pub(super) fn value(answer: &str, name: &str) -> Option<u64> {
    answer.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}
