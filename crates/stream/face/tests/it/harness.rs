//! A broker, its listener, and clients of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trifid_base_runtime::Shutdown;
use trifid_base_runtime::shutdown::Reason;
use trifid_base_web::{Tokens, auth};
use trifid_stream_client::{Client, ClientOptions, StreamSpec, Trust};
use trifid_stream_engine::{Broker, Options as BrokerOptions};
use trifid_stream_face::{Options, Server, serve};

/// Nothing here waits for so long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A broker that serves, and stops when it is dropped.
pub(crate) struct House {
    pub(crate) broker: Broker,
    pub(crate) address: SocketAddr,
    pub(crate) fingerprint: String,
    shutdown: Shutdown,
    server: Option<Server>,
}

impl House {
    /// A broker in memory, its listener with the usual options.
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, |_| {}, None)
    }

    pub(crate) fn with(
        change: impl FnOnce(&mut Options),
        broker: impl FnOnce(&mut BrokerOptions),
        tokens: Option<&Path>,
    ) -> Self {
        let mut broker_options = BrokerOptions::memory();
        broker(&mut broker_options);
        Self::on(Broker::open(broker_options).unwrap(), change, tokens, "127.0.0.1:0".parse().unwrap())
    }

    /// A listener for a broker that is there, at a certain address.
    pub(crate) fn on(
        broker: Broker,
        change: impl FnOnce(&mut Options),
        tokens: Option<&Path>,
        listen: SocketAddr,
    ) -> Self {
        let mut options = Options { listen, workers: 2, ..Options::default() };
        change(&mut options);
        let auth = auth::Options { tokens_file: tokens.map(Into::into), ..auth::Options::default() };
        let resolved = options.resolve(&auth, None).unwrap();
        let tokens = tokens.map(|path| Arc::new(Tokens::open(path).unwrap()));
        let shutdown = Shutdown::new();
        let server = serve(resolved, broker.clone(), tokens, &shutdown).unwrap();
        let (address, fingerprint) = (server.local_addr(), server.fingerprint());
        Self { broker, address, fingerprint, shutdown, server: Some(server) }
    }

    pub(crate) fn options(&self, scheme: &str) -> ClientOptions {
        let options = ClientOptions::new(&format!("{scheme}://{}", self.address)).unwrap();
        options.trust(Trust::fingerprint(&self.fingerprint).unwrap())
    }

    pub(crate) async fn client(&self, scheme: &str) -> Client {
        Client::connect(self.options(scheme)).await.unwrap()
    }

    /// Begins to drain.
    pub(crate) fn stop(&self) {
        self.shutdown.trigger(Reason::Requested);
    }

    /// Waits until the listener has drained.
    pub(crate) fn join(mut self) {
        self.stop();
        if let Some(server) = self.server.take() {
            server.join().unwrap();
        }
    }

    pub(crate) fn metrics(&self) -> String {
        let mut out = trifid_base_web::metrics::Exposition::default();
        self.server.as_ref().unwrap().health().metrics(&mut out);
        out.into_text()
    }

    /// The value of a counter or gauge.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Both transports.
pub(crate) const BOTH: [&str; 2] = ["quic", "tls"];

/// Runs a test over each transport with a house of its own.
pub(crate) fn over_both<F: Future<Output = ()>>(test: impl Fn(Arc<House>, &'static str) -> F) {
    for scheme in BOTH {
        let house = Arc::new(House::new());
        on_runtime(test(house, scheme));
    }
}

/// Runs a test on a runtime of its own, with an end to patience.
pub(crate) fn on_runtime(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test takes too long") });
}

/// A stream in memory.
pub(crate) fn memory(shards: u32) -> StreamSpec {
    StreamSpec::memory(shards)
}
