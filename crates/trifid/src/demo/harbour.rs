//! The harbour behind the stream door: readings each second, a group of three who read them, and what to try.
//!
//! Producer and consumers are clients like any other, over the door's own protocol: what the demo shows is what a
//! program would do.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use trifid_base_runtime::{Clock as _, Entropy, Shutdown, SystemClock, SystemEntropy};
use trifid_stream_client::{
    Client, ClientOptions, Group, GroupOptions, Producer, ProducerOptions, Record, StreamSpec, Trust,
};

use crate::house::House;
use crate::stream::Door;

/// The stream, and the group that reads it.
const STREAM: &str = "demo.readings";
const GROUP: &str = "dashboards";
/// Members of the group; each has a shard of its own to itself.
const MEMBERS: u32 = 3;
/// How often the harbour is measured.
const TICK: Duration = Duration::from_secs(1);
/// How long a consumer waits for readings before it asks again.
const PULL_WAIT: Duration = Duration::from_secs(5);
/// How long one who failed waits before the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// What is measured: sensor, quantity, unit, least and largest value, largest step, decimal digits.
const SENSORS: &[(&str, &str, &str, f64, f64, f64, u32)] = &[
    ("buoy-north", "waveHeight", "m", 0.2, 6.0, 0.08, 2),
    ("buoy-south", "waveHeight", "m", 0.2, 5.0, 0.06, 2),
    ("mole", "windSpeed", "m/s", 0.0, 28.0, 0.6, 1),
    ("mole", "windDirection", "deg", 0.0, 359.0, 4.0, 0),
    ("quay-3", "waterLevel", "m", -1.2, 1.4, 0.02, 2),
    ("quay-3", "waterTemperature", "Cel", 14.0, 22.0, 0.05, 1),
    ("crane-1", "load", "t", 0.0, 40.0, 3.0, 1),
    ("crane-2", "load", "t", 0.0, 40.0, 3.0, 1),
];

/// Opens the stream, lets the harbour live, and says what to try.
pub(super) async fn settle(house: &mut House, data_dir: PathBuf) -> anyhow::Result<String> {
    let door = house.stream.as_ref().context("the demo needs the stream door")?;
    let text = things_to_try(door, &data_dir);
    let client = client(door, &data_dir).await?;
    client.create_stream(STREAM, StreamSpec { shards: MEMBERS, ..StreamSpec::default() }).await?;
    let producer = client.producer(STREAM, ProducerOptions::default()).await?;
    let shutdown = house.supervisor.shutdown().clone();
    house.supervisor.spawn("demo harbour", measure(producer, shutdown.clone()));
    for number in 1..=MEMBERS {
        let name = format!("dashboard-{number}");
        let member = client.join_group(GROUP, &[STREAM], GroupOptions { name, ..GroupOptions::default() });
        house.supervisor.spawn("demo dashboard", read(member.await?, shutdown.clone()));
    }
    Ok(text)
}

async fn client(door: &Door, data_dir: &PathBuf) -> anyhow::Result<Client> {
    let address = format!("quic://localhost:{}", door.native.local_addr().port());
    let options = ClientOptions::new(&address)?.trust(Trust::development(data_dir)).name("trifid demo");
    Client::connect(options).await.context("the demo cannot reach its own stream door")
}

/// Publishes what the sensors measure, every second.
async fn measure(producer: Producer, shutdown: Shutdown) -> Result<(), Infallible> {
    let mut values: Vec<f64> =
        SENSORS.iter().map(|(_, _, _, least, most, ..)| (least + most) / 2.0).collect();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.triggered() => return Ok(()),
        }
        for (at, value) in values.iter_mut().enumerate() {
            let record = step(at, value, SystemClock.now().micros() / 1000, &SystemEntropy);
            if let Err(error) = producer.send(record).await {
                tracing::warn!(error = format!("{error:#}"), "a reading of the harbour was lost");
            }
        }
    }
}

/// The next reading of a sensor: a small step from the last.
fn step(at: usize, value: &mut f64, now_ms: i64, entropy: &dyn Entropy) -> Record {
    let (sensor, quantity, unit, least, most, largest, digits) = SENSORS[at];
    let chance = f64::from(u32::try_from(entropy.next_u64() >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
    *value = (*value + (2.0 * chance - 1.0) * largest).clamp(least, most);
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or(0));
    let rounded = (*value * scale).round() / scale;
    let reading = json!({"sensor": sensor, "quantity": quantity, "value": rounded, "unit": unit});
    Record::new(reading.to_string()).key(sensor).timestamp_ms(now_ms)
}

/// One of the group: takes its share of the readings and says that it has seen them.
async fn read(member: Group, shutdown: Shutdown) -> Result<(), Infallible> {
    loop {
        let pulled = tokio::select! {
            pulled = member.pull(100, 1 << 20, PULL_WAIT) => pulled,
            () = shutdown.triggered() => return Ok(()),
        };
        let done = match pulled {
            Ok(deliveries) if deliveries.is_empty() => continue,
            Ok(deliveries) => member.ack(&deliveries).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            tracing::debug!(%error, "a dashboard of the demo missed something; it comes again");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn things_to_try(door: &Door, data_dir: &std::path::Path) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "trifid".to_owned());
    let certificate = data_dir.join(trifid_stream_face::development::CERTIFICATE);
    let port = door.native.local_addr().port();
    let reach = format!("--server quic://localhost:{port} --ca {}", certificate.display());
    let mut text = format!(
        "\nThe harbour reports: {} readings a second in {STREAM}, read by the group {GROUP} of {MEMBERS}\n",
        SENSORS.len()
    );
    let mut lines = vec![
        (
            "the readings as they come, over QUIC",
            format!("{program} stream consume {STREAM} --count 10 {reach}"),
        ),
        ("who reads them, and how far they are", format!("{program} stream group describe {GROUP} {reach}")),
    ];
    if let Some(kafka) = door.kafka_address() {
        lines.push((
            "the same readings with a client of Kafka",
            format!("kcat -b {kafka} -t {STREAM} -C -o beginning -c 10 -f '%k: %s\\n'"),
        ));
        lines.push((
            "a stream of your own, made on first use, written by the one and read by the other",
            format!(
                "echo 'hello harbour' | kcat -b {kafka} -t demo.notes -P; \
                 {program} stream consume demo.notes --from earliest --until-end {reach}"
            ),
        ));
    }
    for (what, line) in lines {
        let _ = write!(text, "\n# {what}\n{line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use trifid_base_runtime::SeededEntropy;

    use super::*;

    #[test]
    fn readings_stay_within_what_is_plausible() {
        let entropy = SeededEntropy::new(1);
        for (at, (sensor, _, _, least, most, ..)) in SENSORS.iter().enumerate() {
            let mut value = f64::midpoint(*least, *most);
            for _ in 0..1000 {
                let record = step(at, &mut value, 5, &entropy);
                assert!((*least..=*most).contains(&value), "{sensor}: {value}");
                assert_eq!((record.key.as_deref(), record.timestamp_ms), (Some(sensor.as_bytes()), Some(5)));
            }
        }
    }
}
