//! The peer: a NATS server with JetStream, and as much of its client protocol as publishing takes.
//!
//! The server keeps its stream in files and flushes before each acknowledgement (`sync_interval: always`), which is
//! what `on-commit` means; in memory it keeps it as `memory` does. The protocol is text over TCP: `PUB subject
//! reply length`, answered by a `MSG` on the reply subject that names the sequence. There is no TLS on its side, so
//! its figures have that much of an advantage.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::Bench;
use crate::error::Error;
use crate::server::Server;

/// What the server is called in reports.
pub(super) const NAME: &str = "NATS";
/// What it prints before its address.
const LISTENING: &str = "Listening for client connections on ";
/// The stream, and the subject that feeds it.
const STREAM: &str = "bench";
const SUBJECT: &str = "bench.data";
/// A line of the protocol is not longer, in bytes.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Where the stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// In memory.
    Memory,
    /// In files, flushed before each acknowledgement.
    FlushedFile,
}

impl Storage {
    fn word(self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::FlushedFile => "file",
        }
    }
}

/// The server's program, if it is installed: the one that comes with the clients of the tests, or one in the path.
pub(super) fn program() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let own = cache.or_else(home).map(|folder| folder.join("trifid/python/bin/nats-server"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|folder| folder.join("nats-server"));
    own.into_iter().chain(in_path).find(|program| program.is_file())
}

/// Starts it on a free port, with its files in `folder`.
pub(super) fn start(bench: &Bench<'_>, program: &Path, folder: &Path) -> Result<Server, Error> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let settings = folder.join("nats.conf");
    let text = format!(
        "listen: \"{}\"\nserver_name: bench\nmax_payload: 8MB\n\
         jetstream {{\n  store_dir: \"{}\"\n  sync_interval: always\n  max_memory_store: 2GB\n  \
         max_file_store: 8GB\n}}\n",
        free_address()?,
        folder.display(),
    );
    std::fs::write(&settings, text).map_err(Error::file(&settings))?;
    let arguments = ["--config".into(), settings.into_os_string()];
    Server::start_saying(NAME, program, &arguments, folder, bench.options.server_core(), LISTENING)
}

/// A port that nobody listens on just now; the server's own choice of a free one is not printed in time.
fn free_address() -> Result<SocketAddr, Error> {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|probe| probe.local_addr());
    probe.map_err(Error::system("finding a free port"))
}

/// One connection that publishes.
pub(super) struct Publisher {
    socket: TcpStream,
    /// Read and not yet understood.
    buffer: Vec<u8>,
    /// The one command that every message of this connection is, but for its payload.
    command: Vec<u8>,
    inbox: String,
}

impl Publisher {
    /// Connects, and listens for acknowledgements.
    pub(super) async fn connect(address: SocketAddr, number: usize) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let inbox = format!("_INBOX.{number}");
        let mut publisher =
            Publisher { socket, buffer: Vec::with_capacity(64 << 10), command: Vec::new(), inbox };
        publisher.line().await?;
        let hello =
            "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n";
        let subscribe = format!("SUB {} 1\r\nPING\r\n", publisher.inbox);
        publisher.socket.write_all(format!("{hello}{subscribe}").as_bytes()).await?;
        while publisher.line().await? != "PONG" {}
        Ok(publisher)
    }

    /// Makes the stream, once for all connections.
    pub(super) async fn create_stream(&mut self, storage: Storage) -> io::Result<()> {
        let settings = format!(
            "{{\"name\":\"{STREAM}\",\"subjects\":[\"{SUBJECT}\"],\"storage\":\"{}\",\"retention\":\"limits\",\
             \"discard\":\"old\",\"num_replicas\":1,\"max_bytes\":1000000000}}",
            storage.word()
        );
        let answer = self.call(&format!("$JS.API.STREAM.CREATE.{STREAM}"), settings.as_bytes()).await?;
        if answer.contains("\"error\"") { Err(io::Error::other(answer)) } else { Ok(()) }
    }

    /// Forgets the stream.
    pub(super) async fn delete_stream(&mut self) -> io::Result<()> {
        self.call(&format!("$JS.API.STREAM.DELETE.{STREAM}"), b"").await.map(drop)
    }

    async fn call(&mut self, subject: &str, body: &[u8]) -> io::Result<String> {
        let head = format!("PUB {subject} {} {}\r\n", self.inbox, body.len());
        self.socket.write_all(&[head.as_bytes(), body, b"\r\n"].concat()).await?;
        self.message().await
    }

    /// Publishes `count` messages of these bytes and waits until the last of them is acknowledged.
    pub(super) async fn publish(&mut self, payload: &[u8], count: usize) -> io::Result<()> {
        self.prepare(payload, count);
        self.socket.write_all(&self.command).await?;
        for _ in 0..count {
            let answer = self.message().await?;
            if !answer.contains("\"seq\"") {
                return Err(io::Error::other(format!("no acknowledgement: {answer:.200}")));
            }
        }
        Ok(())
    }

    /// The bytes of one call are the same each time.
    fn prepare(&mut self, payload: &[u8], count: usize) {
        if self.command.is_empty() {
            let head = format!("PUB {SUBJECT} {} {}\r\n", self.inbox, payload.len());
            self.command = [head.as_bytes(), payload, b"\r\n"].concat().repeat(count);
        }
    }

    /// The payload of the next message, pings answered meanwhile.
    async fn message(&mut self) -> io::Result<String> {
        loop {
            let line = self.line().await?;
            if line == "PING" {
                self.socket.write_all(b"PONG\r\n").await?;
            } else if let Some(rest) = line.strip_prefix("MSG ").or_else(|| line.strip_prefix("HMSG ")) {
                let length = rest.rsplit(' ').next().and_then(|text| text.parse().ok());
                let length = length.ok_or_else(|| io::Error::other(format!("an odd line: {line}")))?;
                return self.take(length).await;
            } else if line.starts_with("-ERR") {
                return Err(io::Error::other(line));
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<String> {
        while self.buffer.len() < length + 2 {
            self.fill().await?;
        }
        let text = String::from_utf8_lossy(&self.buffer[..length]).into_owned();
        self.buffer.drain(..length + 2);
        Ok(text)
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(io::Error::other("a line without end"));
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        if self.socket.read_buf(&mut self.buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}
