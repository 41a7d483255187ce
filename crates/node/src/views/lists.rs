//! Distribution lists as an operator sees them.

use crate::api::lists::List;
use crate::node::Node;

impl Node {
    /// All distribution lists.
    #[must_use]
    pub fn distribution_lists(&self) -> &[List] {
        self.operations.lists()
    }
}
