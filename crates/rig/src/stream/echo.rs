//! The floor of streams: the least server over the same transport.
//!
//! It reads frames over TLS or QUIC on one thread and answers each with sixteen bytes (`ack`), with itself (`echo`),
//! or with sixteen bytes after one write and one flush of everything that arrived meanwhile (`journal`). What it costs
//! to move a megabyte is what TLS or QUIC cost in this language and runtime; a stream server does that too, and then
//! its own work.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

use super::frames::{self, PAYLOAD_BYTES_MAX};
use super::tls;
use crate::args::{EchoArgs, EchoMode, Transport};
use crate::error::Error;
use crate::floor::Journal;
use crate::server::LISTENING;

/// Bytes asked for by one read.
const READ_BYTES: usize = 256 << 10;
/// Bytes of the journal: more than any wave has.
const JOURNAL_BYTES: usize = 64 << 20;

/// Serves until the process ends.
pub(crate) fn run(args: &EchoArgs) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::system("the floor's runtime"))?;
    let answers = Rc::new(Answers::new(args.mode, args.journal.as_deref())?);
    let identity = tls::Identity::made(&args.certificate)?;
    let serving = async {
        match args.transport {
            Transport::Tls => over_tls(args.listen, &identity, answers).await,
            Transport::Quic => over_quic(args.listen, &identity, answers).await,
        }
    };
    LocalSet::new().block_on(&runtime, serving).map_err(Error::system("the floor's listener"))
}

fn ready(address: SocketAddr) {
    // Nobody reads standard error when the parent is gone; then there is nothing to serve either.
    let _ = writeln!(io::stderr(), "{LISTENING}{address}");
}

async fn over_tls(listen: SocketAddr, identity: &tls::Identity, answers: Rc<Answers>) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(identity.server()?));
    let listener = TcpListener::bind(listen).await?;
    ready(listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let (acceptor, answers) = (acceptor.clone(), Rc::clone(&answers));
        tokio::task::spawn_local(async move {
            // A client that goes away is not an event here.
            // Rustls reads four kibibytes at a time: from this buffer, not from the kernel.
            let socket = BufReader::with_capacity(READ_BYTES, socket);
            if let Ok(stream) = acceptor.accept(socket).await {
                let (read, write) = tokio::io::split(stream);
                let _ = answers.serve(read, write).await;
            }
        });
    }
}

async fn over_quic(listen: SocketAddr, identity: &tls::Identity, answers: Rc<Answers>) -> io::Result<()> {
    let endpoint = tls::endpoint(listen, Some(identity.quic_server()?))?;
    ready(endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        let answers = Rc::clone(&answers);
        tokio::task::spawn_local(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((write, read)) = connection.accept_bi().await {
                let answers = Rc::clone(&answers);
                tokio::task::spawn_local(async move { drop(answers.serve(read, write).await) });
            }
        });
    }
    Ok(())
}

/// What is answered to a frame.
struct Answers {
    mode: EchoMode,
    journal: Option<Journal>,
}

impl Answers {
    fn new(mode: EchoMode, journal: Option<&Path>) -> Result<Self, Error> {
        let journal = journal.map(|path| Journal::prewritten(path, JOURNAL_BYTES)).transpose()?;
        Ok(Answers { mode, journal })
    }

    async fn serve(
        &self,
        mut read: impl AsyncRead + Unpin,
        mut write: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut buffer = BytesMut::with_capacity(READ_BYTES);
        let mut answer = Vec::new();
        loop {
            buffer.reserve(READ_BYTES);
            if read.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            let arrived = whole_frames(&mut buffer, &mut answer, self.mode)?;
            if arrived.is_empty() {
                continue;
            }
            if let Some(journal) = &self.journal {
                journal.append(std::slice::from_ref(&arrived)).await;
            }
            match self.mode {
                EchoMode::Echo => write.write_all(&arrived).await?,
                EchoMode::Ack => write.write_all(&answer).await?,
            }
            answer.clear();
            write.flush().await?;
        }
    }
}

/// Takes the frames that are there from the buffer, and notes an acknowledgement for each.
fn whole_frames(buffer: &mut BytesMut, answer: &mut Vec<u8>, mode: EchoMode) -> io::Result<Bytes> {
    let mut whole = 0;
    while let Some(bytes) = frames::frame_bytes(&buffer[whole..]) {
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if buffer.remaining() - whole < bytes {
            break;
        }
        if mode == EchoMode::Ack {
            answer.extend_from_slice(&frames::acknowledgement(&buffer[whole..]));
        }
        whole += bytes;
    }
    Ok(buffer.split_to(whole).freeze())
}

/// A certificate and its key, read back for a client that trusts nothing else.
pub(super) fn trusted(certificate: &Path) -> Result<CertificateDer<'static>, Error> {
    CertificateDer::from_pem_file(certificate)
        .map_err(|error| Error::Options(format!("{}: {error}", certificate.display())))
}

/// A key in memory.
pub(super) fn key(der: Vec<u8>) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::try_from(der).map_err(|error| Error::Options(format!("the floor's key: {error}")))
}
