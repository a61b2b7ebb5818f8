//! The shapes of the requests that are served, field by field as the protocol's message definitions list them.

use super::shape::{
    BOOL, BYTES, Field, I8, I16, I32, I32S, I64, Kind, TEXT, TEXTS, UUID, all, since, until, within,
};

pub(crate) const API_VERSIONS: &[Field] = &[since(3, TEXT), since(3, TEXT)];

pub(crate) const METADATA: &[Field] =
    &[all(Kind::Structs(&[since(10, UUID), all(TEXT)])), since(4, BOOL), within(8, 10, BOOL), since(8, BOOL)];

pub(crate) const PRODUCE: &[Field] = &[
    all(TEXT),
    all(I16),
    all(I32),
    all(Kind::Structs(&[until(12, TEXT), since(13, UUID), all(Kind::Structs(&[all(I32), all(BYTES)]))])),
];

pub(crate) const FETCH: &[Field] = &[
    until(14, I32),
    all(I32),
    all(I32),
    all(I32),
    all(I8),
    since(7, I32),
    since(7, I32),
    all(Kind::Structs(&[
        until(12, TEXT),
        since(13, UUID),
        all(Kind::Structs(&[all(I32), since(9, I32), all(I64), since(12, I32), since(5, I64), all(I32)])),
    ])),
    since(7, Kind::Structs(&[until(12, TEXT), since(13, UUID), all(I32S)])),
    since(11, TEXT),
];

pub(crate) const LIST_OFFSETS: &[Field] = &[
    all(I32),
    since(2, I8),
    all(Kind::Structs(&[all(TEXT), all(Kind::Structs(&[all(I32), since(4, I32), all(I64)]))])),
    since(10, I32),
];

pub(crate) const OFFSET_FOR_LEADER_EPOCH: &[Field] =
    &[since(3, I32), all(Kind::Structs(&[all(TEXT), all(Kind::Structs(&[all(I32), all(I32), all(I32)]))]))];

pub(crate) const FIND_COORDINATOR: &[Field] = &[until(3, TEXT), since(1, I8), since(4, TEXTS)];

pub(crate) const JOIN_GROUP: &[Field] = &[
    all(TEXT),
    all(I32),
    since(1, I32),
    all(TEXT),
    since(5, TEXT),
    all(TEXT),
    all(Kind::Structs(&[all(TEXT), all(BYTES)])),
    since(8, TEXT),
];

pub(crate) const SYNC_GROUP: &[Field] = &[
    all(TEXT),
    all(I32),
    all(TEXT),
    since(3, TEXT),
    since(5, TEXT),
    since(5, TEXT),
    all(Kind::Structs(&[all(TEXT), all(BYTES)])),
];

pub(crate) const HEARTBEAT: &[Field] = &[all(TEXT), all(I32), all(TEXT), since(3, TEXT)];

pub(crate) const LEAVE_GROUP: &[Field] =
    &[all(TEXT), until(2, TEXT), since(3, Kind::Structs(&[all(TEXT), all(TEXT), since(5, TEXT)]))];

pub(crate) const OFFSET_COMMIT: &[Field] = &[
    all(TEXT),
    all(I32),
    all(TEXT),
    since(7, TEXT),
    until(4, I64),
    all(Kind::Structs(&[all(TEXT), all(Kind::Structs(&[all(I32), all(I64), since(6, I32), all(TEXT)]))])),
];

pub(crate) const OFFSET_FETCH: &[Field] = &[
    until(7, TEXT),
    until(7, Kind::Structs(&[all(TEXT), all(I32S)])),
    since(
        8,
        Kind::Structs(&[
            all(TEXT),
            since(9, TEXT),
            since(9, I32),
            all(Kind::Structs(&[all(TEXT), all(I32S)])),
        ]),
    ),
    since(7, BOOL),
];

pub(crate) const OFFSET_DELETE: &[Field] =
    &[all(TEXT), all(Kind::Structs(&[all(TEXT), all(Kind::Structs(&[all(I32)]))]))];

pub(crate) const LIST_GROUPS: &[Field] = &[since(4, TEXTS), since(5, TEXTS)];

pub(crate) const DESCRIBE_GROUPS: &[Field] = &[all(TEXTS), since(3, BOOL)];

pub(crate) const DELETE_GROUPS: &[Field] = &[all(TEXTS)];

pub(crate) const INIT_PRODUCER_ID: &[Field] = &[all(TEXT), all(I32), since(3, I64), since(3, I16)];

pub(crate) const CREATE_TOPICS: &[Field] = &[
    all(Kind::Structs(&[
        all(TEXT),
        all(I32),
        all(I16),
        all(Kind::Structs(&[all(I32), all(I32S)])),
        all(Kind::Structs(&[all(TEXT), all(TEXT)])),
    ])),
    all(I32),
    all(BOOL),
];

pub(crate) const DELETE_TOPICS: &[Field] =
    &[since(6, Kind::Structs(&[all(TEXT), all(UUID)])), until(5, TEXTS), all(I32)];

pub(crate) const CREATE_PARTITIONS: &[Field] =
    &[all(Kind::Structs(&[all(TEXT), all(I32), all(Kind::Structs(&[all(I32S)]))])), all(I32), all(BOOL)];

pub(crate) const DESCRIBE_CONFIGS: &[Field] =
    &[all(Kind::Structs(&[all(I8), all(TEXT), all(TEXTS)])), all(BOOL), since(3, BOOL)];

pub(crate) const ALTER_CONFIGS: &[Field] =
    &[all(Kind::Structs(&[all(I8), all(TEXT), all(Kind::Structs(&[all(TEXT), all(TEXT)]))])), all(BOOL)];

pub(crate) const INCREMENTAL_ALTER_CONFIGS: &[Field] = &[
    all(Kind::Structs(&[all(I8), all(TEXT), all(Kind::Structs(&[all(TEXT), all(I8), all(TEXT)]))])),
    all(BOOL),
];

pub(crate) const DESCRIBE_CLUSTER: &[Field] = &[all(BOOL), since(1, I8), since(2, BOOL)];

pub(crate) const SASL_HANDSHAKE: &[Field] = &[all(TEXT)];

pub(crate) const SASL_AUTHENTICATE: &[Field] = &[all(BYTES)];

#[cfg(test)]
mod tests {
    use crate::api::table::APIS;
    use crate::samples::body;
    use crate::wire::shape::check;

    #[test]
    fn every_shape_fits_what_the_codec_writes() {
        let versions =
            APIS.iter().flat_map(|api| (api.oldest..=api.newest).map(move |version| (api, version)));
        for (api, version) in versions {
            let (key, body) = (api.key, body(api.key, version));
            let walk = |body: &[u8]| check(api.shape, version, api.is_flexible(version), body);
            assert_eq!(walk(&body), Ok(()), "{key:?} {version}");
            for cut in 0..body.len() {
                assert!(walk(&body[..cut]).is_err(), "{key:?} {version} cut at {cut}");
            }
        }
    }
}
