//! One worker: a thread, a single-threaded runtime, a listener, and the connections that the kernel gave it.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;
use trifid_base_runtime::Shutdown;

use super::connection::{Connection, End};
use super::shared::{Shared, Ticket};
use super::stats::Counts;
use super::watch::{Deadlines, Enlisted, Order, Overdue, Watch};
use crate::api::Session;
use crate::limits::ACCEPT_PAUSE;

/// A worker's own state.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    watch: Rc<Watch>,
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>) -> Rc<Self> {
        Rc::new(Self { index, shared, watch: Rc::default() })
    }

    /// This worker's counts.
    pub(crate) fn counts(&self) -> &Counts {
        self.shared.counts.worker(self.index)
    }

    /// Runs the worker until it has drained.
    pub(crate) async fn run(self: Rc<Self>, listener: TcpListener, shutdown: Shutdown) {
        let limits = &self.shared.resolved.limits;
        let deadlines = Deadlines {
            request: limits.request_timeout,
            answer: limits.write_timeout,
            idle: limits.idle_timeout,
        };
        // The watch is polled here rather than spawned: if it died alone, nobody would notice.
        tokio::select! {
            () = self.watch.run(deadlines, |overdue| self.tell(overdue)) => {}
            () = self.serve(listener, shutdown) => {}
        }
    }

    fn tell(&self, overdue: Overdue) {
        let counts = self.counts();
        match overdue {
            Overdue::Request => counts.slow_requests.bump(),
            Overdue::Answer => counts.slow_readers.bump(),
            Overdue::Idle => counts.idle_closed.bump(),
        }
    }

    async fn serve(self: &Rc<Self>, listener: TcpListener, shutdown: Shutdown) {
        tokio::select! {
            biased;
            () = shutdown.triggered() => {}
            () = self.shared.closed() => {}
            () = self.accept(&listener) => {}
        }
        drop(listener);
        self.watch.command_all(Order::Finish);
        let limit = self.shared.resolved.limits.drain_timeout;
        if tokio::time::timeout(limit, self.watch.all_gone()).await.is_err() {
            tracing::warn!(worker = self.index, "the drain of clients of Kafka was cut short");
            self.watch.command_all(Order::Cut);
            self.watch.all_gone().await;
        }
    }

    async fn accept(self: &Rc<Self>, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) => self.pause(&error).await,
            }
        }
    }

    fn take(self: &Rc<Self>, stream: TcpStream, peer: SocketAddr) {
        self.counts().accepted.bump();
        let Some(ticket) = self.shared.take_connection() else {
            self.counts().turned_away.bump();
            return;
        };
        let enlisted = self.watch.enlist();
        spawn_local(Rc::clone(self).connect(stream, peer, enlisted, ticket));
    }

    async fn connect(
        self: Rc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        enlisted: Enlisted,
        ticket: Ticket,
    ) {
        // An answer must not wait for the acknowledgement of the one before. That it cannot be set harms nobody.
        let _ = stream.set_nodelay(true);
        let Ok(local) = stream.local_addr() else { return };
        let session = Session::new(&self, peer, local);
        match &self.shared.resolved.tls {
            None => Connection::new(stream, enlisted, session, self).await,
            Some(tls) => {
                let tls = TlsAcceptor::from(Arc::clone(tls));
                Box::pin(self.connect_tls(tls, stream, enlisted, session)).await;
            }
        }
        drop(ticket);
    }

    async fn connect_tls(
        self: Rc<Self>,
        tls: TlsAcceptor,
        stream: TcpStream,
        enlisted: Enlisted,
        session: Session,
    ) {
        let link = Rc::clone(&enlisted.link);
        let limit = self.shared.resolved.limits.request_timeout;
        let ordered = poll_fn(|cx| match link.order(cx.waker()) {
            Order::Serve => Poll::Pending,
            Order::Finish | Order::Cut => Poll::Ready(()),
        });
        let accepted = tokio::select! {
            accepted = tokio::time::timeout(limit, tls.accept(stream).into_fallible()) => accepted,
            () = ordered => return,
        };
        match accepted {
            Ok(Ok(stream)) => Connection::new(stream, enlisted, session, self).await,
            // The socket closes after the count, so that whoever sees the one finds the other.
            Ok(Err((_, _stream))) => self.counts().tls_failures.bump(),
            Err(_) => self.counts().tls_failures.bump(),
        }
    }

    /// Counts why a connection ended, if it was not the client that ended it.
    pub(crate) fn note(&self, end: &End, peer: SocketAddr) {
        let counts = self.counts();
        match end {
            End::Gone | End::Ordered => return,
            End::Malformed(_) => counts.malformed.bump(),
            End::TooLarge { .. } => counts.too_large.bump(),
            End::Unsupported { .. } => counts.unsupported.bump(),
            End::Stranger => counts.strangers.bump(),
            End::Denied => counts.denied.bump(),
            End::Unacknowledged => counts.unacknowledged_failures.bump(),
            End::Reauthenticate => counts.reauthentications.bump(),
            End::Broken(_) => {}
        }
        tracing::debug!(%peer, reason = %end, "a client of Kafka was closed");
    }

    /// Out of descriptors or memory: trying again at once would only burn the worker.
    async fn pause(&self, error: &io::Error) {
        self.counts().accept_errors.bump();
        // A connection that died in the queue is nobody's trouble.
        if error.kind() != io::ErrorKind::ConnectionAborted {
            tracing::warn!(%error, worker = self.index, "no client of Kafka can be accepted for the moment");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}
