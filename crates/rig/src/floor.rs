//! The floor: the least that any server must do.
//!
//! A bare hyper server on one thread that reads each request to its end and answers fixed bytes: those that
//! the broker answered. It speaks HTTP, owns a socket with TCP_NODELAY and does nothing else, so its CPU
//! per request is what no server in this language and runtime can go below. With a journal it becomes the
//! floor of durable writes: the bodies of all requests that arrived in the meantime are one wave, written
//! once and flushed once before any of them is answered.
//!
//! It runs as a process of its own (`trifid bench floor`), because its CPU is read from `/proc` exactly as
//! the broker's is.

mod journal;

use crate::args::FloorArgs;
use crate::error::Error;
use crate::server::LISTENING;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
pub(crate) use journal::Journal;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use tokio::net::{TcpListener, TcpStream};

/// What the floor answers to everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixed {
    /// The status code.
    pub status: u16,
    /// Header fields besides those that hyper adds itself.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Fixed {
    fn response(&self) -> Result<Parts, Error> {
        let odd = |what: &str| Error::Options(format!("the floor's answer has an invalid {what}"));
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|_| odd("header name"))?;
            headers.append(name, HeaderValue::try_from(value.as_str()).map_err(|_| odd("header value"))?);
        }
        let status = StatusCode::from_u16(self.status).map_err(|_| odd("status"))?;
        Ok(Parts { status, headers, body: Bytes::from(self.body.clone()) })
    }
}

struct Parts {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Parts {
    fn to_response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response
    }
}

struct Floor {
    parts: Parts,
    journal: Option<Journal>,
}

impl Floor {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut body = request.into_body();
        let mut written = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            if let (Some(_), Ok(data)) = (&self.journal, frame.into_data()) {
                written.push(data);
            }
        }
        if let Some(journal) = &self.journal {
            journal.append(&written).await;
        }
        self.parts.to_response()
    }
}

/// Serves until the process ends: prints the address, then answers everything with what `answer` holds.
pub(crate) fn run(args: &FloorArgs) -> Result<(), Error> {
    let text = std::fs::read_to_string(&args.answer).map_err(Error::file(&args.answer))?;
    let fixed = serde_json::from_str(&text)
        .map_err(|error| Error::Options(format!("the floor's answer: {error}")))?;
    serve(args.listen, &fixed, args.journal.as_deref(), |address| {
        // Nobody reads standard error when the parent is gone; then there is nothing to serve either.
        let _ = writeln!(std::io::stderr(), "{LISTENING}{address}");
    })
}

/// Serves on the calling thread until it ends.
pub(crate) fn serve(
    listen: SocketAddr,
    fixed: &Fixed,
    journal: Option<&Path>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    let floor = Floor { parts: fixed.response()?, journal: journal.map(Journal::open).transpose()? };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(Error::system("the floor's runtime"))?;
    let local = tokio::task::LocalSet::new();
    local
        .block_on(&runtime, accept(listen, Rc::new(floor), ready))
        .map_err(Error::system("the floor's listener"))
}

async fn accept(listen: SocketAddr, floor: Rc<Floor>, ready: impl FnOnce(SocketAddr)) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    ready(listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::task::spawn_local(connection(socket, Rc::clone(&floor)));
    }
}

async fn connection(socket: TcpStream, floor: Rc<Floor>) {
    let service = service_fn(move |request| {
        let floor = Rc::clone(&floor);
        async move { Ok::<_, Infallible>(floor.answer(request).await) }
    });
    // A client that goes away is not an event here.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Client;

    /// Starts a floor on a thread of this process.
    pub(crate) fn spawned(fixed: &Fixed, journal: Option<&Path>) -> SocketAddr {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (fixed, journal) = (fixed.clone(), journal.map(Path::to_owned));
        std::thread::spawn(move || {
            let listen = SocketAddr::from(([127, 0, 0, 1], 0));
            serve(listen, &fixed, journal.as_deref(), |address| sender.send(address).unwrap())
        });
        receiver.recv().unwrap()
    }

    pub(crate) fn fixed(status: u16, body: &str) -> Fixed {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Fixed { status, headers, body: body.to_owned() }
    }

    #[test]
    fn it_answers_what_it_was_given() {
        let fixed = fixed(200, "{\"a\":1}");
        let mut client = Client::connect("the floor", spawned(&fixed, None)).unwrap();
        for _ in 0..3 {
            let reply =
                client.call(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").unwrap();
            assert_eq!((reply.status, &reply.body[..]), (200, &b"{\"a\":1}"[..]));
            assert_eq!(reply.headers, fixed.headers);
        }
    }

    #[test]
    fn a_journal_holds_every_body_before_its_answer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut client = Client::connect("the floor", spawned(&fixed(204, ""), Some(&path))).unwrap();
        for round in 1..=3 {
            client.call(b"PATCH /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello".repeat(round));
        }
    }

    #[test]
    fn an_answer_that_is_no_answer_is_refused() {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        for fixed in [fixed(99, ""), Fixed { headers: vec![("a b".into(), String::new())], ..fixed(200, "") }]
        {
            assert!(matches!(serve(listen, &fixed, None, |_| ()), Err(Error::Options(_))));
        }
    }
}
