//! The sample world of `data/world`, inside the binary: Porto Lume, an invented city with an observatory.

use serde_json::{Map, Value};

/// One entity as it is posted.
pub(crate) type Entity = Map<String, Value>;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../data/world/", $name, ".jsonld")))),*]
    };
}

/// One file a type: its name, and a JSON array of entities.
pub(crate) const FILES: &[(&str, &str)] = files![
    "AirQualityObserved",
    "AstronomicalExposure",
    "Beach",
    "Berth",
    "BikeHireDockingStation",
    "Building",
    "Device",
    "EVChargingStation",
    "Event",
    "NightSkyQuality",
    "NoiseLevelObserved",
    "OffStreetParking",
    "Organization",
    "PointOfInterest",
    "Port",
    "PublicTransportLine",
    "PublicTransportStop",
    "RoadSegment",
    "SeaConditionsObserved",
    "Streetlight",
    "StreetlightControlCabinet",
    "Telescope",
    "TrafficFlowObserved",
    "Vehicle",
    "Vessel",
    "WasteContainer",
    "WeatherObserved",
];

/// The entities of one file.
pub(crate) fn entities(text: &str) -> serde_json::Result<Vec<Entity>> {
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_world_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/world");
        let names =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let there: BTreeSet<_> =
            names.filter(|name| name.ends_with(".jsonld") && name != "context.jsonld").collect();
        let embedded: BTreeSet<_> = FILES.iter().map(|(name, _)| format!("{name}.jsonld")).collect();
        assert_eq!(embedded, there);
    }

    #[test]
    fn the_world_is_as_large_as_it_claims() {
        let all: Vec<Entity> = FILES.iter().flat_map(|(_, text)| entities(text).unwrap()).collect();
        let ids: BTreeSet<_> = all.iter().map(|entity| entity["id"].as_str().unwrap()).collect();
        assert!(FILES.len() >= 8 && all.len() >= 200, "{} types, {} entities", FILES.len(), all.len());
        assert_eq!(ids.len(), all.len(), "an id occurs once");
    }
}
