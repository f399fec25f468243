#ifndef LOCAL_H
#define LOCAL_H
#define BINS 26
#endif
