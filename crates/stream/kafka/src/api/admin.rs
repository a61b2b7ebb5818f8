//! InitProducerId: an identity for a producer that wants its retries recognised (KIP-98, without transactions).

use std::rc::Rc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use super::caller::Caller;

/// Hands out an identity. It is new each time: an epoch is raised only within a transaction's id (KIP-360 lets a
/// producer that failed ask with its old one, and a new one serves it as well).
pub(crate) async fn init_producer(
    caller: Rc<Caller>,
    request: InitProducerIdRequest,
    _: i16,
) -> InitProducerIdResponse {
    let refused = |error: ResponseError| {
        InitProducerIdResponse::default()
            .with_error_code(error.code())
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1)
    };
    if !caller.may_write() {
        return refused(ResponseError::ClusterAuthorizationFailed);
    }
    if request.transactional_id.is_some() {
        // Every client takes this code for final; there are no transactions here.
        return refused(ResponseError::TransactionalIdAuthorizationFailed);
    }
    let (broker, tenant) = (caller.broker().clone(), caller.tenant.clone());
    match super::caller::blocking(move || broker.init_producer(&tenant)).await {
        Ok(Ok(identity)) => InitProducerIdResponse::default()
            .with_producer_id(ProducerId(identity.id))
            .with_producer_epoch(identity.epoch),
        // The coordinator cannot for the moment: clients try again.
        Ok(Err(_)) => refused(ResponseError::CoordinatorNotAvailable),
        Err(error) => refused(error),
    }
}
