template <int N, class T> __global__ void k(T *p) { extern __shared__ T s[]; s[0] = p[N]; }
#define RUN(g, ...) k<3><<<(g), dim3(2, 2), 16, 0>>>(__VA_ARGS__)
int main() { int a = 1 <<3>> 1; k<1, float><<<a, f<2>(3)>>>((float *)0, "<<<x>>>"); RUN(4, 0); ns::k2<<<1, 1>>>(); }
