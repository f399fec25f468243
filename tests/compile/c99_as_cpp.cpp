/* The plain C of c99.c is C++, too, and then calls the functions that C++ sees. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* C's way to a struct of zeros is {0} */
#include "c99.c"
