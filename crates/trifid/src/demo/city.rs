//! The city behind the context door: moved in, kept alive, and what to ask it.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use trifid_base_runtime::{Clock as _, Shutdown, SystemClock, SystemEntropy};
use trifid_context_engine::broker::{BatchItem, BatchResult};
use trifid_context_engine::{Broker, TenantName};
use trifid_context_model::json::Doc;
use trifid_context_model::ld::Context;
use trifid_context_model::time::Instant;

use super::life::Life;
use super::world;
use crate::context::Door;
use crate::house::House;

/// How often something happens in the city.
const TICK: Duration = Duration::from_secs(1);

/// Moves the city in, brings it to life, and says what to try.
pub(super) async fn settle(house: &mut House) -> anyhow::Result<String> {
    let door = house.context.as_ref().context("the demo needs the context door")?;
    let city = City::of(door);
    let mut life = Life::default();
    let mut count = 0;
    for (name, text) in world::FILES {
        let entities = world::entities(text).with_context(|| format!("the world's {name} is damaged"))?;
        life.note(&entities);
        count += city.move_in(text).await.with_context(|| format!("the world's {name} is refused"))?;
    }
    let shutdown = house.supervisor.shutdown().clone();
    house.supervisor.spawn("demo life", city.live(life, shutdown));
    Ok(things_to_try(house.address, count))
}

/// The broker as the demo uses it: the default tenant, and the core context alone, under which every name is
/// in the standard's default vocabulary, so that nobody who tries it out has to name a context.
struct City {
    broker: Arc<Broker>,
    context: Arc<Context>,
    tenant: TenantName,
}

impl City {
    fn of(door: &Door) -> Self {
        let broker = Arc::clone(&door.broker);
        let context = Arc::clone(door.contexts.core(broker.now()).context());
        Self { broker, context, tenant: TenantName::default_tenant() }
    }

    /// Creates the entities of a file; answers how many there are now.
    async fn move_in(&self, text: &str) -> anyhow::Result<usize> {
        let document = Doc::parse(text.as_bytes())?;
        let result = self.broker.batch_create(&self.tenant, self.items(&document)).await?;
        refusals(&result)?;
        Ok(result.created.len())
    }

    fn items<'d>(&self, document: &'d Doc<'d>) -> Vec<BatchItem<'d>> {
        let values = document.root().items();
        values.map(|value| BatchItem { value, context: Arc::clone(&self.context) }).collect()
    }

    /// Lets something happen every second.
    async fn live(self, mut life: Life, shutdown: Shutdown) -> Result<(), Infallible> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = shutdown.triggered() => return Ok(()),
            }
            let now = Instant(SystemClock.now().micros()).to_string();
            let changes = Value::Array(life.step(&now, &SystemEntropy)).to_string();
            if let Err(error) = self.change(&changes).await {
                tracing::warn!(error = format!("{error:#}"), "the city stood still for a second");
            }
        }
    }

    async fn change(&self, changes: &str) -> anyhow::Result<()> {
        let document = Doc::parse(changes.as_bytes())?;
        let items = self.items(&document);
        refusals(&self.broker.batch_update(&self.tenant, items, false).await?)
    }
}

fn refusals(result: &BatchResult) -> anyhow::Result<()> {
    let first = result.errors.first().map(|refused| format!("{:?}: {}", refused.entity_id, refused.error));
    ensure!(
        first.is_none(),
        "{} of a batch refused, the first {}",
        result.errors.len(),
        first.unwrap_or_default()
    );
    Ok(())
}

/// Five requests and what they show.
const REQUESTS: &[(&str, &str)] = &[
    (
        "where the electric vehicles are, as bare values; a second later they have moved",
        "entities?type=ElectricVehicle&format=simplified&pick=id,speed,location&limit=3",
    ),
    (
        "who is within 2 km of the old quay and faster than 20 km/h, counted",
        "entities?type=Vehicle&q=speed%3E20&georel=near;maxDistance==2000&geometry=Point\
         &coordinates=[-20.509,38.398]&format=simplified&pick=id,speed&limit=5&count=true",
    ),
    (
        "the busiest streets first, each with the road that it measures",
        "entities?type=TrafficFlowObserved&orderBy=intensity;desc&limit=3&format=simplified&lang=en&join=inline\
         &pick=id,intensity,refRoadSegment{name,maximumAllowedSpeed}",
    ),
    (
        "one place, in French, with when it was created and last changed",
        "entities/urn:ngsi-ld:PointOfInterest:Farol?lang=fr&options=sysAttrs",
    ),
    ("which types of things there are", "types"),
];

fn things_to_try(address: SocketAddr, count: usize) -> String {
    let mut text = format!("Porto Lume is alive: {count} entities at http://{address}/ngsi-ld/v1\n");
    for (what, request) in REQUESTS {
        let _ = write!(text, "\n# {what}\ncurl -sg 'http://{address}/ngsi-ld/v1/{request}'\n");
    }
    text
}
