//! A broker for clients of Kafka alone, to try the listener with: memory unless `--dir` names a directory.
//!
//! ```text
//! cargo run -p trifid-stream-kafka --example serve -- --listen 127.0.0.1:9092 [--dir DIR] [--tokens FILE]
//! ```
//!
//! `RUST_LOG=debug` tells why connections were closed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use trifid_base_log::RealDisk;
use trifid_base_runtime::Shutdown;
use trifid_base_web::{Tokens, auth};
use trifid_stream_engine::{Broker, CreatePolicy, Options as EngineOptions};
use trifid_stream_kafka::{Options, serve};
use trifid_stream_model::spec::StreamSpec;

#[derive(Default)]
struct Args {
    listen: Option<String>,
    dir: Option<PathBuf>,
    tokens: Option<PathBuf>,
}

fn args() -> Result<Args, String> {
    let mut args = Args::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--listen" => args.listen = Some(value),
            "--dir" => args.dir = Some(value.into()),
            "--tokens" => args.tokens = Some(value.into()),
            _ => return Err(format!("{word} is not known")),
        }
    }
    Ok(args)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt().with_env_filter(wanted).with_writer(std::io::stderr).init();
    let args = args()?;
    let mut engine = match &args.dir {
        None => EngineOptions::memory(),
        Some(dir) => {
            std::fs::create_dir_all(dir)?;
            EngineOptions::on(Arc::new(RealDisk::open(dir)?))
        }
    };
    let spec = if args.dir.is_some() { StreamSpec::default() } else { StreamSpec::memory(1) };
    engine.create = CreatePolicy { auto_create: true, spec };
    let broker = Broker::open(engine)?;
    let mut options = Options::default();
    if let Some(listen) = &args.listen {
        options.kafka_listen = listen.parse()?;
    }
    let tokens = args.tokens.as_ref().map(Tokens::open).transpose()?.map(Arc::new);
    let resolved = options.resolve(&auth::Options { tokens_file: args.tokens, ..Default::default() })?;
    let server = serve(resolved, broker.clone(), tokens, &Shutdown::new())?;
    // The one line that a script waits for.
    use std::io::Write as _;
    writeln!(std::io::stdout(), "listening on {}", server.local_addr())?;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        broker.tick(broker.now_ms());
    }
}
