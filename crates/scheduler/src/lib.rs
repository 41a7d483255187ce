//! Which message goes next on which association: one pure machine.
