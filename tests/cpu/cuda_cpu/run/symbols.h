/* What the executable's own symbol table tells: the name of a kernel, and where block-scope `__shared__` variables
 * (thread-local ones here) lie. A stripped executable has neither: then addresses are printed, and static shared memory
 * keeps what the last block left. */
#pragma once
#pragma GCC system_header

#include <cxxabi.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#else
#include <dlfcn.h>
#endif
#include "../calls.h"

namespace cuda_cpu {

/* Their places in the symbol table tell where the executable was loaded, and where a thread's block of thread-local
 * variables starts. */
__attribute__((used, noinline)) inline void anchor_function() {}
__attribute__((used)) inline thread_local char anchor_variable = 1;

struct shared_variable {
  ptrdiff_t offset; /* from anchor_variable */
  size_t size;
  size_t padding; /* behind it, up to the next thread-local variable or a multiple of shared_fence */
  const char *name;
};
const int shared_fence = 128; /* bytes before each __shared__ variable, under ASan */
struct symbol {
  uintptr_t address;
  size_t size;
  const char *name;
};
struct symbol_table {
  symbol *functions;
  size_t function_count;
  shared_variable *shared, *fences;
  int shared_count, fence_count;
  symbol *variables; /* the program's own, `__device__` ones among them, for the race checker */
  size_t variable_count;
  uintptr_t base; /* where the executable lies */
};

#ifdef __linux__
inline bool is_fence_name(const char *name) { return strstr(name, "cuda_cpu_fence_") != nullptr; }
inline bool is_shared_name(const char *name) {
  if (strncmp(name, "_ZZ", 3)) return false; /* a variable of some function */
  static const char *const others[] = {"8cuda_cpu",   "_ZZNSt",  "_ZZSt",  "__asan",
                                       "__sanitizer", "__ubsan", "__lsan", "__interception"};
  for (const char *o : others)
    if (strstr(name, o)) return false;
  return true;
}

inline bool is_variable_name(const char *name) {
  return !strstr(name, "8cuda_cpu") && strncmp(name, "_ZNSt", 5) && strncmp(name, "_ZTV", 4) && strncmp(name, "__", 2);
}

/* Zeroed, and apart from what malloc gives, which a kernel may have overwritten when names are needed. NULL: none. */
inline void *symbol_memory(size_t bytes) {
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

inline void read_symbols(symbol_table *table) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (file < 0 || fstat(file, &st)) return;
  size_t bytes = static_cast<size_t>(st.st_size);
  void *p = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0); /* stays: names are read from it */
  close(file);
  if (p == MAP_FAILED) return;
  const char *image = static_cast<const char *>(p);
  const ElfW(Ehdr) *head = reinterpret_cast<const ElfW(Ehdr) *>(image);
  if (bytes < sizeof *head || head->e_shoff + head->e_shnum * sizeof(ElfW(Shdr)) > bytes) return;
  const ElfW(Shdr) *sections = reinterpret_cast<const ElfW(Shdr) *>(image + head->e_shoff);
  for (int i = 0; i < head->e_shnum; i++) {
    const ElfW(Shdr) &s = sections[i];
    if (s.sh_type != SHT_SYMTAB || s.sh_link >= head->e_shnum) continue;
    const ElfW(Sym) *symbols = reinterpret_cast<const ElfW(Sym) *>(image + s.sh_offset);
    const char *names = image + sections[s.sh_link].sh_offset;
    size_t count = s.sh_size / sizeof *symbols, functions = 0, shared = 0, variables = 0;
    uintptr_t base = 0;
    ptrdiff_t anchor = 0;
    for (size_t k = 0; k < count; k++) {
      const char *name = names + symbols[k].st_name;
      int type = symbols[k].st_info & 15;
      functions += type == STT_FUNC;
      variables += type == STT_OBJECT;
      shared += type == STT_TLS;
      if (!strcmp(name, "_ZN8cuda_cpu15anchor_functionEv"))
        base = reinterpret_cast<uintptr_t>(&anchor_function) - symbols[k].st_value;
      if (!strcmp(name, "_ZN8cuda_cpu15anchor_variableE")) anchor = static_cast<ptrdiff_t>(symbols[k].st_value);
    }
    table->functions = static_cast<symbol *>(symbol_memory((functions + 1) * sizeof(symbol)));
    table->shared = static_cast<shared_variable *>(symbol_memory((shared + 1) * sizeof(shared_variable)));
    table->fences = static_cast<shared_variable *>(symbol_memory((shared + 1) * sizeof(shared_variable)));
    table->variables = static_cast<symbol *>(symbol_memory((variables + 1) * sizeof(symbol)));
    table->base = base;
    if (!table->functions || !table->shared || !table->fences || !table->variables) return;
    for (size_t k = 0; k < count; k++) {
      const char *name = names + symbols[k].st_name;
      int type = symbols[k].st_info & 15;
      if (type == STT_FUNC)
        table->functions[table->function_count++] = symbol{base + symbols[k].st_value, symbols[k].st_size, name};
      if (type == STT_OBJECT && symbols[k].st_size && symbols[k].st_shndx && is_variable_name(name))
        table->variables[table->variable_count++] = symbol{base + symbols[k].st_value, symbols[k].st_size, name};
      if (type != STT_TLS || !symbols[k].st_size) continue;
      const shared_variable v = {static_cast<ptrdiff_t>(symbols[k].st_value) - anchor, symbols[k].st_size, 0, name};
      if (is_fence_name(name))
        table->fences[table->fence_count++] = v;
      else if (is_shared_name(name))
        table->shared[table->shared_count++] = v;
    }
    for (int i = 0; i < table->shared_count; i++) {
      shared_variable &v = table->shared[i];
      const uint64_t end = static_cast<uint64_t>(v.offset + anchor) + v.size;
      uint64_t next = (end + shared_fence - 1) / shared_fence * shared_fence;
      for (size_t k = 0; table->fence_count && k < count; k++)
        if ((symbols[k].st_info & 15) == STT_TLS && symbols[k].st_value >= end && symbols[k].st_value < next)
          next = symbols[k].st_value;
      v.padding = next - end;
    }
    return;
  }
}
#else
inline void read_symbols(symbol_table *) {}
#endif

inline symbol_table symbol_table_storage;
inline const symbol_table *symbols() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { read_symbols(&symbol_table_storage); });
  return &symbol_table_storage;
}

/* NULL: not known */
inline const char *mangled_name(const void *function) {
  const symbol_table *t = symbols();
  uintptr_t address = reinterpret_cast<uintptr_t>(function);
  for (size_t i = 0; i < t->function_count; i++)
    if (t->functions[i].address == address) return t->functions[i].name;
#ifndef __linux__
  Dl_info info;
  if (dladdr(function, &info) && info.dli_saddr == function) return info.dli_sname;
#endif
  return nullptr;
}

/* Without a compiler's suffix: clang calls the part of a variable that it kept NAME.0. */
inline void plain_name(const char *mangled, char *name, size_t bytes) {
  char *const without = strndup(mangled, strcspn(mangled, "."));
  int status;
  const bool is_mangled = without && strstr(without, "_Z"); /* else a variable n would become __int128 */
  char *const plain = is_mangled ? abi::__cxa_demangle(without, nullptr, nullptr, &status) : nullptr;
  snprintf(name, bytes, "%s", plain ? plain : mangled);
  free(plain);
  free(without);
}

inline named_address *named_addresses;
CUDA_CPU_ENTRY void remember_name(named_address *a) {
  if (a->next) return;
  named_address *first = __atomic_load_n(&named_addresses, __ATOMIC_ACQUIRE);
  do a->next = first ? first : a; /* the last one points to itself */
  while (!__atomic_compare_exchange_n(&named_addresses, &first, a, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

/* The demangled name of a function, or its address. */
inline void symbol_name(const void *function, char *name, size_t bytes) {
  for (const named_address *a = __atomic_load_n(&named_addresses, __ATOMIC_ACQUIRE); a; a = a->next) {
    if (a->address == function) {
      snprintf(name, bytes, "%s", a->name);
      return;
    }
    if (a->next == a) break;
  }
  if (const char *mangled = mangled_name(function))
    plain_name(mangled, name, bytes);
  else
    snprintf(name, bytes, "at %p", function);
}

/* What the address lies in; NULL: not known. */
inline const symbol *symbol_around(const symbol *list, size_t count, uintptr_t address) {
  for (size_t i = 0; i < count; i++)
    if (address - list[i].address < list[i].size) return list + i;
  return nullptr;
}

/* The static shared variables that a kernel declares itself, as indices (the caller frees them): `tile` in `_Z6kernelPf`
 * is `_ZZ6kernelPfE4tile`. */
struct shared_list {
  int *indices, count;
};
inline shared_list shared_of(const void *function) {
  const symbol_table *t = symbols();
  const char *name = mangled_name(function);
  const size_t length = name ? strlen(name) : 0;
  shared_list l = {static_cast<int *>(calloc(static_cast<size_t>(t->shared_count) + 1, sizeof(int))), 0};
  if (length < 2 || !l.indices) return l;
  for (int i = 0; i < t->shared_count; i++) {
    const char *v = t->shared[i].name;
    if (!strncmp(v + 3, name + 2, length - 2) && v[length + 1] == 'E') l.indices[l.count++] = i;
  }
  return l;
}

inline size_t static_shared(const void *function) {
  const shared_list l = shared_of(function);
  size_t bytes = 0;
  for (int i = 0; i < l.count; i++) bytes += symbols()->shared[l.indices[i]].size;
  free(l.indices);
  return bytes;
}

} // namespace cuda_cpu
