//! What is served: each API with its versions, the first version whose lengths are compact (KIP-482), and the shape
//! of its requests.
//!
//! The table is what `ApiVersions` answers, and what a request is checked against before it is read. A client picks
//! the highest version that both sides have, so leaving out a version costs nothing but what it would have added.

use kafka_protocol::messages::ApiKey;

use crate::wire::shape::Field;
use crate::wire::shapes;

/// No version of the API has compact lengths.
const NEVER: i16 = i16::MAX;

/// One API.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) key: ApiKey,
    pub(crate) oldest: i16,
    pub(crate) newest: i16,
    flexible_since: i16,
    pub(crate) shape: &'static [Field],
}

impl Api {
    /// Whether this version is served.
    pub(crate) fn serves(&self, version: i16) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// Whether lengths of this version are compact and its structures end with tagged fields.
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        version >= self.flexible_since
    }

    /// Whether requests carry records, and may therefore be large.
    pub(crate) fn carries_records(&self) -> bool {
        self.key == ApiKey::Produce
    }
}

const fn api(key: ApiKey, versions: (i16, i16), flexible_since: i16, shape: &'static [Field]) -> Api {
    Api { key, oldest: versions.0, newest: versions.1, flexible_since, shape }
}

/// Every API that is served, by key.
pub(crate) const APIS: &[Api] = &[
    // KIP-98: before version 3 records were message sets, whose two formats are not stored.
    api(ApiKey::Produce, (3, 12), 9, shapes::PRODUCE),
    api(ApiKey::Fetch, (4, 16), 12, shapes::FETCH),
    api(ApiKey::ListOffsets, (1, 8), 6, shapes::LIST_OFFSETS),
    api(ApiKey::Metadata, (0, 13), 9, shapes::METADATA),
    api(ApiKey::OffsetCommit, (2, 9), 8, shapes::OFFSET_COMMIT),
    api(ApiKey::OffsetFetch, (1, 9), 6, shapes::OFFSET_FETCH),
    api(ApiKey::FindCoordinator, (0, 6), 3, shapes::FIND_COORDINATOR),
    api(ApiKey::JoinGroup, (0, 9), 6, shapes::JOIN_GROUP),
    api(ApiKey::Heartbeat, (0, 4), 4, shapes::HEARTBEAT),
    api(ApiKey::LeaveGroup, (0, 5), 4, shapes::LEAVE_GROUP),
    api(ApiKey::SyncGroup, (0, 5), 4, shapes::SYNC_GROUP),
    api(ApiKey::DescribeGroups, (0, 5), 5, shapes::DESCRIBE_GROUPS),
    api(ApiKey::ListGroups, (0, 5), 3, shapes::LIST_GROUPS),
    api(ApiKey::SaslHandshake, (0, 1), NEVER, shapes::SASL_HANDSHAKE),
    api(ApiKey::ApiVersions, (0, 4), 3, shapes::API_VERSIONS),
    api(ApiKey::CreateTopics, (2, 7), 5, shapes::CREATE_TOPICS),
    api(ApiKey::DeleteTopics, (1, 6), 4, shapes::DELETE_TOPICS),
    api(ApiKey::InitProducerId, (0, 4), 2, shapes::INIT_PRODUCER_ID),
    api(ApiKey::OffsetForLeaderEpoch, (2, 4), 4, shapes::OFFSET_FOR_LEADER_EPOCH),
    api(ApiKey::DescribeConfigs, (1, 4), 4, shapes::DESCRIBE_CONFIGS),
    api(ApiKey::AlterConfigs, (0, 2), 2, shapes::ALTER_CONFIGS),
    api(ApiKey::SaslAuthenticate, (0, 2), 2, shapes::SASL_AUTHENTICATE),
    api(ApiKey::CreatePartitions, (0, 3), 2, shapes::CREATE_PARTITIONS),
    api(ApiKey::DeleteGroups, (0, 2), 2, shapes::DELETE_GROUPS),
    api(ApiKey::IncrementalAlterConfigs, (0, 1), 1, shapes::INCREMENTAL_ALTER_CONFIGS),
    api(ApiKey::OffsetDelete, (0, 0), NEVER, shapes::OFFSET_DELETE),
    api(ApiKey::DescribeCluster, (0, 1), 0, shapes::DESCRIBE_CLUSTER),
];

/// The API of this key.
pub(crate) fn find(key: i16) -> Option<&'static Api> {
    APIS.iter().find(|api| api.key as i16 == key)
}

/// Whether the head of a request of this key and version has tagged fields. Of an API that is not served nothing is
/// known, and nothing needs to be.
pub(crate) fn has_flexible_head(key: i16, version: i16) -> bool {
    find(key).is_some_and(|api| api.serves(version) && api.is_flexible(version))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::{Message as _, VersionRange};

    use super::*;

    #[test]
    fn keys_ascend_and_versions_are_known_to_the_codec() {
        assert!(APIS.is_sorted_by_key(|api| api.key as i16));
        for api in APIS {
            let VersionRange { min, max } = api.key.valid_versions();
            assert!(min <= api.oldest && api.oldest <= api.newest && api.newest <= max, "{:?}", api.key);
            for version in api.oldest..=api.newest {
                let head = if api.is_flexible(version) { 2 } else { 1 };
                assert_eq!(api.key.request_header_version(version), head, "{:?} {version}", api.key);
            }
        }
        assert_eq!(kafka_protocol::messages::ApiVersionsRequest::VERSIONS.max, 4);
    }

    #[test]
    fn the_documentation_lists_what_is_served() {
        let documentation = include_str!("../../../../../docs/kafka.md");
        let (_, section) = documentation.split_once("## APIs").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        for api in APIS {
            let row = match api.oldest == api.newest {
                true => format!("| {:?} | {} |", api.key, api.oldest),
                false => format!("| {:?} | {}-{} |", api.key, api.oldest, api.newest),
            };
            assert!(section.contains(&row), "{row}");
        }
    }

    #[test]
    fn unknown_keys_are_found_nowhere() {
        assert!(find(999).is_none() && !has_flexible_head(999, 9));
        assert!(find(ApiKey::Fetch as i16).is_some_and(|api| api.serves(4) && !api.serves(3)));
    }
}
