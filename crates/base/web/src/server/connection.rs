//! One connection: TLS if there is any, HTTP/2 or HTTP/1.1, then requests until it ends.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::core::Core;
use super::link::{Link, Order};
use super::service::respond;
use super::shared::Ticket;
use super::wire::Wire;
use crate::limits::{LINGER, LINGER_BYTES_MAX, SNIFF_BYTES};
use crate::tls::Tls;

/// A connection and the core that serves it: what each of its requests needs.
pub(crate) struct Connection {
    pub(crate) core: Rc<Core>,
    pub(crate) link: Rc<Link>,
}

/// Runs HTTP/2 streams on the core that owns their connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Serves a connection to its end, or until it is told to be cut.
pub(crate) async fn serve_connection(core: Rc<Core>, stream: TcpStream, ticket: Ticket) {
    let enlisted = core.watch.enlist();
    let link = &enlisted.link;
    if core.is_closing() {
        link.drain(core.watch.now());
    }
    let mut work = pin!(begin(&core, link, stream));
    poll_fn(|cx| {
        link.listen(cx.waker());
        if link.order() == Order::Cut { Poll::Ready(()) } else { work.as_mut().poll(cx) }
    })
    .await;
    drop(ticket);
}

/// The rarer and larger kinds of connection are boxed, so that a plain one of HTTP/1.1 takes no more than it needs.
async fn begin(core: &Rc<Core>, link: &Rc<Link>, stream: TcpStream) {
    match &core.shared.resolved.tls {
        None => {
            if let Some((stream, first)) = sniff(stream).await {
                let multiplexed = first.starts_with(b"PRI");
                drive(core, link, stream, first, multiplexed).await;
            }
        }
        Some(tls) => Box::pin(begin_tls(core, link, stream, tls)).await,
    }
}

async fn begin_tls(core: &Rc<Core>, link: &Rc<Link>, stream: TcpStream, tls: &Tls) {
    match TlsAcceptor::from(tls.config()).accept(stream).await {
        Ok(stream) => {
            let multiplexed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            drive(core, link, stream, Bytes::new(), multiplexed).await;
        }
        Err(error) => {
            core.stats().tls_failures.bump();
            tracing::debug!(%error, "TLS handshake failed");
        }
    }
}

/// Reads until the protocol can be told. The first three bytes are enough: `PRI` begins the HTTP/2 preface
/// (RFC 9113 3.4) and no request of HTTP/1.1, whose method names it reserves (RFC 9110 18.2).
async fn sniff(mut stream: TcpStream) -> Option<(TcpStream, Bytes)> {
    let mut first = BytesMut::with_capacity(SNIFF_BYTES);
    while first.len() < 3 && b"PRI".starts_with(&first[..]) {
        if stream.read_buf(&mut first).await.ok()? == 0 {
            return None;
        }
    }
    Some((stream, first.freeze()))
}

async fn drive<S>(core: &Rc<Core>, link: &Rc<Link>, stream: S, first: Bytes, multiplexed: bool)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    link.set_wired();
    let wire = TokioIo::new(Wire::new(stream, first, Rc::clone(link), Rc::clone(core)));
    let connection = Rc::new(Connection { core: Rc::clone(core), link: Rc::clone(link) });
    let service = service_fn(move |request| respond(Rc::clone(&connection), request));
    let result = if multiplexed {
        core.stats().http2.bump();
        link.set_multiplexed(core.watch.now());
        let connection = core.http2.serve_connection(wire, service);
        Box::pin(driven(link, connection, |connection| connection.graceful_shutdown())).await
    } else {
        let connection = core.http1.serve_connection(wire, service);
        driven(link, connection, |connection| connection.graceful_shutdown()).await
    };
    if let Err(error) = result {
        let stats = core.stats();
        let count = match &error {
            error if error.is_parse_too_large() => &stats.large_heads,
            error if error.is_parse() => &stats.malformed,
            _ => &stats.broken,
        };
        count.bump();
        tracing::debug!(%error, "connection broke");
    }
}

/// Drives a connection, and tells it once to finish what is in flight when its link says so.
async fn driven<C: Future>(link: &Link, connection: C, finish: impl Fn(Pin<&mut C>)) -> C::Output {
    let mut connection = pin!(connection);
    let mut told = false;
    poll_fn(|cx| {
        if !told && link.order() == Order::Finish {
            told = true;
            finish(connection.as_mut());
        }
        connection.as_mut().poll(cx)
    })
    .await
}

/// Answers a connection over the limit 503, without looking at what it asks, and sees it off.
pub(crate) async fn turn_away(core: &Core, mut stream: TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
        content-length: 0\r\n\r\n";
    let farewell = pin!(async {
        stream.write_all(ANSWER).await?;
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await
    });
    // Whether the client waited for it is its own affair.
    let _ = tokio::time::timeout(LINGER, farewell).await;
    tracing::debug!(core = core.index, "a connection over the limit was turned away");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, F: Future>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_plain_connection_is_small() {
        // Ten thousand of them are allowed. Without the boxes it is seven times as much.
        assert!(size(serve_connection) <= 2048, "{} bytes", size(serve_connection));
    }

    #[test]
    fn a_request_is_small() {
        // hyper moves it into place for every request.
        fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
            size_of::<F>()
        }
        assert!(size(respond) <= 1280, "{} bytes", size(respond));
    }
}
