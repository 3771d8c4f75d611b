//! Tests of fleets on embedded clusters.

mod bench;
mod changes;
mod fencing;
mod joining;
mod outages;
mod places;
mod sources;
