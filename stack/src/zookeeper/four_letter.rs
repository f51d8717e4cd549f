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

/// Path and session of each watch in the answer to `wchp`: a line for a path, and below it one for each session.
pub(super) fn watches(answer: &str) -> Vec<(String, i64)> {
    let mut path = "";
    let mut watches = Vec::new();
    for line in answer.lines() {
        match line.strip_prefix("\t0x") {
            // The number is printed as if it had no sign.
            Some(session) => {
                let session = u64::from_str_radix(session.trim(), 16).map(u64::cast_signed);
                watches.extend(session.map(|session| (path.to_owned(), session)));
            }
            None => path = line,
        }
    }
    watches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_listed_by_path() {
        let answer = "/a\n\t0x10\n\t0xffffffffffffffff\n/b/c\n\t0x2\n";
        let expected =
            [("/a", 16), ("/a", -1), ("/b/c", 2)].map(|(path, session)| (path.to_owned(), session));
        assert_eq!(watches(answer), expected);
        assert!(watches("").is_empty());
    }
}
