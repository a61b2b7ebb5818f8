//! Entry points that take any bytes: the bodies of the fuzz targets under `fuzz/`, and of the tests that replay their
//! corpus on the stable toolchain.
