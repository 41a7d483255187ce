//! DiffServ code points and plans from precedence to code point.
