//! The strategy of APIServices.

use lariat_apimachinery::object::Object;
use serde_json::json;

use super::parts::{at, is_void};
use crate::server::Server;
use crate::strategy::set_condition;

/// A group version without a Service is that of the server itself.
pub(super) fn prepare_service(server: &Server, object: &mut Object) {
    if is_void(at(object, &["spec", "service"])) {
        let condition = json!({
            "type": "Available", "status": "True", "reason": "Local",
            "message": "Local APIServices are always available",
        });
        set_condition(object, condition, &server.clock.now());
    }
}
