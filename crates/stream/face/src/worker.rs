//! A worker: one thread, one runtime, a QUIC endpoint and a TCP listener, and the connections that the kernel
//! gave it.
//!
//! Connections never change their worker, so that nothing they hold needs a lock against another. One timer a
//! worker looks after all of them: who is silent, who does not read, who has not introduced himself.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quinn::{Connection, ConnectionStats, Endpoint, Incoming, VarInt};
use slab::Slab;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::Receiver;
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;
use trifid_base_runtime::Shutdown;

use crate::account::Account;
use crate::lane::{Lane, Order, Post};
use crate::limits::{ACCEPT_PAUSE, TICK};
use crate::link::{Link, QuicLink, TlsLink};
use crate::listen::Sockets;
use crate::server::{Shared, Stage, Ticket};
use crate::stats::QuicStats;
use crate::tls::ALPN;

/// What is said when a QUIC connection is closed in good order.
const CODE_BYE: VarInt = VarInt::from_u32(0);

/// What a worker listens on.
pub(crate) struct Listeners {
    endpoint: Endpoint,
    tcp: TcpListener,
}

/// A worker's state, shared by its tasks.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    started: Instant,
    /// Milliseconds since the start, as of the last tick.
    now_ms: Cell<u64>,
    posts: RefCell<Slab<Rc<Post>>>,
    connections: RefCell<Slab<Connection>>,
    /// What QUIC connections that have ended add to the counters.
    ended: RefCell<Totals>,
}

impl Worker {
    /// Registers the sockets with the runtime that this is called in.
    pub(crate) fn new(
        index: usize,
        sockets: Sockets,
        shared: Arc<Shared>,
    ) -> io::Result<(Rc<Self>, Listeners)> {
        let tls = shared.resolved.tls.current();
        let endpoint = shared.transports.endpoint(index, sockets.udp, &tls, shared.resolved.listen.ip())?;
        let tcp = TcpListener::from_std(sockets.tcp)?;
        let worker = Self {
            index,
            shared,
            started: Instant::now(),
            now_ms: Cell::new(0),
            posts: RefCell::default(),
            connections: RefCell::default(),
            ended: RefCell::default(),
        };
        Ok((Rc::new(worker), Listeners { endpoint, tcp }))
    }

    /// Milliseconds since the worker began, precise to a [`TICK`].
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// Serves until it has drained.
    pub(crate) async fn run(self: Rc<Self>, listeners: Listeners, shutdown: Shutdown) {
        let Listeners { endpoint, tcp } = listeners;
        let mut stage = self.shared.stage.subscribe();
        let (mut quic_stage, mut tcp_stage) = (stage.clone(), stage.clone());
        tokio::select! {
            // Polled here rather than spawned: if it died alone, nobody would notice.
            () = self.watch() => {}
            () = async {
                tokio::join!(
                    self.accept_quic(&endpoint, &mut quic_stage),
                    self.accept_tcp(&tcp, &mut tcp_stage),
                    announce(&self.shared, shutdown, &mut stage),
                );
                drop(tcp);
                self.drain().await;
            } => {}
        }
        endpoint.close(CODE_BYE, b"shutdown");
        let _ = tokio::time::timeout(Duration::from_millis(500), endpoint.wait_idle()).await;
    }

    async fn accept_quic(self: &Rc<Self>, endpoint: &Endpoint, stage: &mut Receiver<Stage>) {
        loop {
            tokio::select! {
                biased;
                _ = stage.wait_for(|stage| *stage == Stage::Draining) => return,
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => self.take_quic(incoming),
                    None => return,
                },
            }
        }
    }

    fn take_quic(self: &Rc<Self>, incoming: Incoming) {
        let Some(ticket) = self.shared.ticket() else {
            self.shared.core.stats.turned_away.add(self.index, 1);
            return incoming.refuse();
        };
        self.shared.core.stats.quic_accepted.add(self.index, 1);
        spawn_local(Rc::clone(self).serve_quic(incoming, ticket));
    }

    async fn accept_tcp(self: &Rc<Self>, listener: &TcpListener, stage: &mut Receiver<Stage>) {
        loop {
            tokio::select! {
                biased;
                _ = stage.wait_for(|stage| *stage == Stage::Draining) => return,
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => self.take_tcp(socket),
                    Err(error) => self.pause(&error).await,
                },
            }
        }
    }

    fn take_tcp(self: &Rc<Self>, socket: TcpStream) {
        // Closed without a word: a handshake for everybody over the limit is what the limit is there to
        // spare.
        let Some(ticket) = self.shared.ticket() else {
            return self.shared.core.stats.turned_away.add(self.index, 1);
        };
        self.shared.core.stats.tcp_accepted.add(self.index, 1);
        spawn_local(Rc::clone(self).serve_tcp(socket, ticket));
    }

    /// Out of descriptors or memory: trying again at once would only burn the core.
    async fn pause(&self, error: &io::Error) {
        self.shared.core.stats.accept_errors.add(self.index, 1);
        // A connection that died in the queue is nobody's trouble.
        if error.kind() != io::ErrorKind::ConnectionAborted {
            tracing::warn!(%error, worker = self.index, "no connection can be accepted for the moment");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }

    async fn serve_tcp(self: Rc<Self>, socket: TcpStream, ticket: Ticket) {
        let _ = socket.set_nodelay(true);
        let acceptor = TlsAcceptor::from(Arc::clone(&self.shared.resolved.tls.current().tcp));
        let limit = self.shared.resolved.limits.handshake_timeout;
        let greeted = tokio::time::timeout(limit, acceptor.accept(socket)).await;
        let Ok(Ok(stream)) = greeted else {
            return self.shared.core.stats.handshakes_failed.add(self.index, 1);
        };
        let (socket, tls) = stream.into_inner();
        // A client that named no protocol at all has not said that it speaks this one.
        if tls.alpn_protocol() != Some(ALPN) {
            return self.shared.core.stats.handshakes_failed.add(self.index, 1);
        }
        let account = Rc::new(Account::new(ticket));
        self.serve_lane(TlsLink::new(socket, tls), account).await;
    }

    async fn serve_quic(self: Rc<Self>, incoming: Incoming, ticket: Ticket) {
        let config = {
            let tls = self.shared.resolved.tls.current();
            self.shared.transports.server_config(&tls, incoming.remote_address().ip())
        };
        let limit = self.shared.resolved.limits.handshake_timeout;
        let greeted = match incoming.accept_with(config) {
            Ok(connecting) => tokio::time::timeout(limit, connecting).await.ok().and_then(Result::ok),
            Err(_) => None,
        };
        let Some(connection) = greeted else {
            return self.shared.core.stats.handshakes_failed.add(self.index, 1);
        };
        let key = self.connections.borrow_mut().insert(connection.clone());
        let account = Rc::new(Account::new(ticket));
        while let Ok((send, receive)) = connection.accept_bi().await {
            let (worker, account) = (Rc::clone(&self), Rc::clone(&account));
            spawn_local(async move { worker.serve_lane(QuicLink::new(send, receive), account).await });
        }
        self.connections.borrow_mut().remove(key);
        self.ended.borrow_mut().add(&connection.stats());
    }

    /// Serves one byte stream to its end.
    async fn serve_lane(self: &Rc<Self>, link: impl Link, account: Rc<Account>) {
        let post = Rc::new(Post::new(self.now_ms()));
        let key = self.posts.borrow_mut().insert(Rc::clone(&post));
        let _registered = Registered { worker: self, key };
        self.shared.core.stats.lanes.add(self.index, 1);
        // The stage may have changed before the post was there to be told.
        if *self.shared.stage.borrow() == Stage::Draining {
            post.order(Order::Drain);
        }
        Lane::new(Rc::clone(self), account, link, post).await;
    }

    /// Looks after all connections, for ever.
    async fn watch(&self) {
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.tick();
        }
    }

    fn tick(&self) {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.now_ms.set(now_ms);
        let limits = &self.shared.resolved.limits;
        for (_, post) in self.posts.borrow().iter() {
            if let Some(order) = post.overdue(now_ms, limits) {
                post.order(order);
            }
        }
        self.measure();
    }

    /// Reads QUIC's own counters where metrics find them.
    fn measure(&self) {
        let mut totals = self.ended.borrow().clone();
        let mut mtu_least = 0;
        for (_, connection) in self.connections.borrow().iter() {
            let stats = connection.stats();
            totals.add(&stats);
            let mtu = u64::from(stats.path.current_mtu);
            mtu_least = if mtu_least == 0 { mtu } else { mtu.min(mtu_least) };
        }
        if let Some(quic) = self.shared.core.stats.quic.get(self.index) {
            quic.mtu_least.store(mtu_least, Ordering::Relaxed);
            totals.store(quic);
        }
    }

    /// Tells every connection to finish, and cuts those that do not.
    async fn drain(&self) {
        for (_, post) in self.posts.borrow().iter() {
            post.order(Order::Drain);
        }
        let limit = self.shared.resolved.limits.drain_timeout;
        if tokio::time::timeout(limit, self.all_gone()).await.is_ok() {
            return;
        }
        let left = self.posts.borrow().len();
        tracing::warn!(worker = self.index, left, "the drain of streams was cut short");
        self.shared.core.stats.cut.add(self.index, left as u64);
        for (_, post) in self.posts.borrow().iter() {
            post.order(Order::Cut);
        }
        // A cut is obeyed at the next poll; a task that cannot even be polled is dropped with the runtime.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.all_gone()).await;
    }

    async fn all_gone(&self) {
        while !self.posts.borrow().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A lane's place among the posts, given up also when the lane panics.
struct Registered<'a> {
    worker: &'a Worker,
    key: usize,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.worker.posts.borrow_mut().remove(self.key);
    }
}

/// From the shutdown to the end of listening. Whichever worker sees it first tells all.
async fn announce(shared: &Shared, shutdown: Shutdown, stage: &mut Receiver<Stage>) {
    tokio::select! {
        () = shutdown.triggered() => {
            shared.stage.send_replace(Stage::Draining);
        }
        _ = stage.wait_for(|stage| *stage == Stage::Draining) => {}
    }
}

/// Sums over QUIC connections.
#[derive(Clone, Debug, Default)]
struct Totals {
    black_holes: u64,
    lost_packets: u64,
    sent_packets: u64,
    datagrams: u64,
    ios: u64,
}

impl Totals {
    fn add(&mut self, stats: &ConnectionStats) {
        self.black_holes += stats.path.black_holes_detected;
        self.lost_packets += stats.path.lost_packets;
        self.sent_packets += stats.path.sent_packets;
        self.datagrams += stats.udp_tx.datagrams;
        self.ios += stats.udp_tx.ios;
    }

    fn store(&self, quic: &QuicStats) {
        quic.black_holes.store(self.black_holes, Ordering::Relaxed);
        quic.lost_packets.store(self.lost_packets, Ordering::Relaxed);
        quic.sent_packets.store(self.sent_packets, Ordering::Relaxed);
        quic.datagrams.store(self.datagrams, Ordering::Relaxed);
        quic.ios.store(self.ios, Ordering::Relaxed);
    }
}
