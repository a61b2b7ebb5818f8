//! The HTTP binding of NGSI-LD (clause 6).

mod limits;
mod link;
mod media;
mod paging;
mod params;
mod percent;
mod prefer;
mod problem;
mod reply;
mod route;
