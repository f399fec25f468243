#ifndef SIZES_H
#define SIZES_H
const int items = 96;
#endif
