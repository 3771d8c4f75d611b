//! What a console can be about.

use lariat_controller::SharedControllerFactory;
#[cfg(feature = "operator")]
use lariat_operator::Operator;

use crate::members::Members;

/// What a console can be about: a factory, and with the feature `operator` an operator.
pub trait Observed: sealed::Join {}

pub(crate) mod sealed {
    use super::Members;

    pub trait Join {
        /// Adds the factory under a context id; an operator names the program if that has no name yet.
        #[allow(private_interfaces, reason = "the trait is sealed by it")]
        fn join(&self, context: &str, members: &Members, name: &mut Option<String>);
    }
}

impl Observed for SharedControllerFactory {}

impl sealed::Join for SharedControllerFactory {
    #[allow(private_interfaces, reason = "the trait is sealed by it")]
    fn join(&self, context: &str, members: &Members, _: &mut Option<String>) {
        members.add(context, self);
    }
}

#[cfg(feature = "operator")]
impl Observed for Operator {}

#[cfg(feature = "operator")]
impl sealed::Join for Operator {
    #[allow(private_interfaces, reason = "the trait is sealed by it")]
    fn join(&self, context: &str, members: &Members, name: &mut Option<String>) {
        members.add(context, self.factory());
        members.add_operator(self.downgrade());
        name.get_or_insert_with(|| self.name().to_owned());
    }
}
