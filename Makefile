# gpukit: `make` alone lists what there is to do. Needs GNU make 4 and a C++17 compiler, and CUDA only for a GPU.
#
#   BACKEND=gpu    builds with nvcc and runs on the GPU
#   BACKEND=cpu    builds with g++ or clang++ and runs on the stand-in for CUDA in tests/cpu
#   BACKEND=auto   the first if nvcc and a GPU are there, otherwise the second (default)
#   ARCH=sm_90a    what nvcc builds for; or flags, as in ARCH='-gencode arch=compute_90a,code=sm_90a'
#   CXX= CC= NVCC= CLANG_FORMAT=   other tools      CXXFLAGS= NVCCFLAGS=   further flags      V=1   shows the commands
#   FILE= PHOTO= TABLES= CSV=      one name each, of any characters
#   ARGS= BENCHFLAGS= DATA=        words, as a shell reads them

BACKEND      ?= auto
NVCC         ?= $(shell PATH="$$PATH:/usr/local/cuda/bin" command -v nvcc)
CLANG_FORMAT ?= clang-format

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:
.PHONY: help run cpu test test-all checks bench bench-binaries bench-gate bench-refit bench-dist bench-compile plots \
        examples lessons charts gpu-binaries fuzz coverage mutate same-code format check-format clean FORCE
FORCE:

help:
	@echo 'run           takes a photograph through the library, into build/tour (PHOTO=mine.ppm: another one)'
	@echo 'cpu           runs any CUDA program without a GPU: make cpu FILE=hw.cu [ARGS="..."] [ASAN=1] [RACES=1] [STATS=1]'
	@echo 'test          the tests and compile checks (TESTS=tests/test_scan.cu: only that)'
	@echo 'test-all      all of them: with every type, target, C++ standard, schedule and sanitizer, too'
	@echo 'bench         measures against CUB, cuBLAS and the memory ceiling (needs a GPU); BENCHFLAGS=--help: how;'
	@echo '              BUILD_FOR=sm_90a, sm_90, compute_80 (PTX for the driver to compile), ...: which code is measured'
	@echo 'bench-binaries builds it for each of BUILDS="$(BUILDS)"'
	@echo 'bench-gate    compares files of the bench, without a GPU: GATEFLAGS=--help: how'
	@echo 'bench-refit   fits the costs by which products are planned to times of the bench, without a GPU, and prints the'
	@echo '              table and what its choices lose (DATA="FILE.csv ..." by BENCHFLAGS=--plan-times=FILE.csv)'
	@echo 'bench-dist    measures what working together costs several GPUs (needs NCCL; flags: see tests/bench/dist.cu)'
	@echo 'bench-compile measures compile times and objects: a bare .cu, with gpukit, with CUB (needs nvcc, but no GPU;'
	@echo '              RUNS=5 ONLY="scan matmul" CSV=FILE)'
	@echo 'plots         draws the results in tests/bench/h200-sm_90a.csv, or in CSV=FILE, into build/plots/ (needs gnuplot)'
	@echo 'examples      builds all of examples/'
	@echo 'lessons       runs the numbered ones, with tables as text, CSV and charts (by gnuplot) into build/lessons/'
	@echo 'charts        draws the tables of lessons again, those in build/lessons/ or in TABLES=FOLDER'
	@echo 'fuzz          feeds any bytes to the picture reader and to cuda_to_cpp (needs clang; FUZZ_SECONDS=60 for each)'
	@echo 'coverage      lines of gpukit.cuh that no test runs on the CPU'
	@echo 'mutate        breaks gpukit.cuh in many ways, and shows which break no test notices (MUTATIONS=name: only those)'
	@echo 'same-code     lists the kernels whose machine code is not that of another commit: make same-code OLD=HEAD~1'
	@echo '              (NEW=COMMIT: against that, not the working tree; QUICK=1: fewer kernels; needs nvcc, but no GPU)'
	@echo 'sanitize      tests and lessons on a GPU under the tools of compute-sanitizer (SANITIZE=test_scan: only that)'
	@echo 'format        formats the sources'
	@echo 'check-format  lists the sources that are not formatted, and fails if there are any'
	@echo 'clean         removes build/'
	@echo
	@echo 'BACKEND=auto|gpu|cpu says where; the head of the Makefile has the other variables.'

# All cores unless -j says otherwise.
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0)
  MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

# ---- where -----------------------------------------------------------------------------------------------------------

# A container may have a GPU and no nvidia-smi; CUDA_VISIBLE_DEVICES may hide every GPU.
has_nvcc := $(if $(NVCC),$(shell command -v '$(NVCC)' 2>/dev/null))
has_gpu  := $(shell [ "$${CUDA_VISIBLE_DEVICES-0}" ] && [ "$${CUDA_VISIBLE_DEVICES-0}" != -1 ] || exit; \
              if command -v nvidia-smi >/dev/null; then nvidia-smi -L 2>/dev/null | grep '^GPU'; \
              else ls -d /dev/nvidia[0-9]* 2>/dev/null; fi)
why_not  := $(if $(has_nvcc),$(if $(has_gpu),,no GPU is here),nvcc is not here)

ifeq ($(BACKEND),auto)
  backend := $(if $(why_not),cpu,gpu)
else ifneq ($(filter gpu cpu,$(BACKEND)),)
  backend := $(BACKEND)
else
  $(error BACKEND is auto, gpu or cpu, not '$(BACKEND)')
endif
ifneq ($(filter run test test-all examples lessons,$(MAKECMDGOALS)),)
  ifeq ($(BACKEND) $(backend),auto cpu)
    $(info On the CPU stand-in: $(why_not).)
  else ifeq ($(backend),gpu)
    $(if $(why_not),$(error BACKEND=gpu: $(why_not)))
  endif
endif

# ---- how to build ----------------------------------------------------------------------------------------------------

comma    := ,
space    := $(subst ,, )
WARNINGS := -Wall -Wextra -Wshadow -Wconversion

# With -mfma fmaf() is one instruction, not a call. Contraction would give other bits than the sources spell out.
fma       := $(shell grep -qsw fma /proc/cpuinfo && echo -mfma)
# addr2line of binutils 2.40 takes the first file of DWARF 5's table for another one.
CPU_FLAGS  = -std=c++17 -gdwarf-4 -g1 $(fma) -ffp-contract=off -I tests/cpu -I tests/cpu/stubs -I . -pthread -rdynamic
CPU        = $(CXX) -O2 $(CPU_FLAGS) $(WARNINGS) -Werror $(CXXFLAGS)
# Tests take longer to compile than to run.
CPU_TEST   = $(subst -O2,-Og,$(CPU))
CPU_LINK   = -pthread -rdynamic
CPU_ASAN   = $(CXX) -Og $(CPU_FLAGS) -w -fsanitize=address,undefined -fno-sanitize-recover=all $(CXXFLAGS)

# The race checker and the counters see each access by what -fsanitize=thread makes the compiler call, and are linked
# instead of ThreadSanitizer's own library (hence no -fsanitize=thread there). Lines of inlined functions take -g, and a
# third of the time again: the tests of the checker itself have it.
clang     := $(findstring clang,$(shell $(CXX) --version 2>/dev/null))
traced    := -fsanitize=thread $(if $(clang),-mllvm -tsan-distinguish-volatile=1 \
               -mllvm -tsan-instrument-read-before-write=1,--param tsan-distinguish-volatile=1 -fno-tree-sra -Wno-tsan)
counted   := -fsanitize-coverage=trace-pc
linked    := -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset -ldl
CPU_TRACED = $(CXX) -Og $(CPU_FLAGS) -w $(traced) $(CXXFLAGS)
# Lessons stay near their sources' own branches and accesses, and compile in half the time.
CPU_LESSON = $(CXX) -Og $(CPU_FLAGS) -Wall -Wno-unknown-pragmas $(traced) $(counted) $(CXXFLAGS)

# Without a GPU: the oldest target, whose PTX the driver of any newer one takes. With one: what it is; but Hopper's own
# instructions are in code for sm_90a alone, which native is not.
caps      := $(if $(has_gpu),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null))
native    := $(if $(filter-out 9.0,$(caps)),native,$(if $(caps),sm_90a,native))
ARCH      ?= $(if $(has_gpu),$(native),sm_75)
# The bench: machine code of one target, or with compute_80 PTX alone, which the driver compiles.
BUILD_FOR ?= $(if $(filter -%,$(ARCH)),flags,$(ARCH))
bench_at  := build/bench-$(BUILD_FOR)
NVCC_BASE  = $(NVCC) -O3 -Werror all-warnings -Xcompiler=$(subst $(space),$(comma),$(WARNINGS)) -I . $(NVCCFLAGS)
GPU        = $(NVCC_BASE) -std=c++17 -lineinfo $(if $(filter -%,$(ARCH)),$(ARCH),-arch=$(ARCH))

# An edited header rebuilds what includes it ...
DEPS = -MD -MP -MF $@.d -MT $@
-include $(wildcard build/*/*.d)
build/%.d: ;

# ... and other tools or flags than last time rebuild all.
tools_cpu     = $(CPU) $(CPU_TEST)
tools_asan    = $(CPU_ASAN)
tools_traced  = $(CPU_TRACED)
tools_lesson  = $(CPU_LESSON)
tools_gpu     = $(GPU)
tools_bench   = $(GPU)
BENCH         = $(NVCC_BASE) -std=c++17 -DBENCH_BUILD='"$(BUILD_FOR)"' $(if $(filter sm_%,$(BUILD_FOR)),-gencode \
                  arch=$(BUILD_FOR:sm_%=compute_%)$(comma)code=$(BUILD_FOR),$(if $(filter compute_%,$(BUILD_FOR)),-gencode \
                  arch=$(BUILD_FOR)$(comma)code=$(BUILD_FOR),$(arch)))
tools_bench-$(BUILD_FOR) = $(BENCH)
tools_compile = $(CC) $(CPU) $(GPU) $(alone) $(foreach way,$(ways),$(way) $($(way)))
ways          = $(sort $(filter-out way.sm_% way.compute_%,$(filter way.%,$(.VARIABLES))))
build/%/flags: FORCE
	@mkdir -p $(@D); echo '$(tools_$*)' | cmp -s - $@ || echo '$(tools_$*)' >$@

# Each is timed, for the list of what took longest that ends the tests.
Q    = $(if $(V),,@tests/run.sh timed $@ )
say  = @printf '  %-5s %s\n' $(1) $@

# The stand-in's own part of a program is compiled once for all of a kind. Where both have the code of a function the one
# that is linked first wins: the better optimised one, but the program's own where accesses and branches are counted.
runtime_cpu = $(CPU)
runtime     = build/$1/runtime.o -DCUDA_CPU_ELSEWHERE
build/%/runtime.o: build/%/flags
	$(call say,CXX)
	$(Q)$(filter-out -rdynamic,$(or $(runtime_$*),$(tools_$*))) $(DEPS) -include cuda_runtime.h -x c++ -c /dev/null -o $@

build/cpu/%: tests/%.cu build/cpu/flags build/cpu/runtime.o
	$(call say,CXX)
	$(Q)$(CPU_TEST) $(call runtime,cpu) $(DEPS) -x c++ $< -o $@ -ldl
build/cpu/%: examples/%.cu build/cpu/flags build/cpu/runtime.o
	$(call say,CXX)
	$(Q)$(CPU) $(call runtime,cpu) $(DEPS) -x c++ $< -o $@ -ldl
build/asan/%: tests/%.cu build/asan/flags build/asan/runtime.o
	$(call say,ASAN)
	$(Q)$(CPU_ASAN) $(call runtime,asan) $(DEPS) -x c++ $< -o $@ -ldl
build/traced/%: tests/%.cu build/traced/flags build/traced/runtime.o
	$(call say,CXX)
	$(Q)$(CPU_TRACED) $(if $(filter $(traces),$*),-g) $(if $(findstring counters,$*),$(counted)) \
	  -DCUDA_CPU_ELSEWHERE $(DEPS) -x c++ -c $< -o $@.o
	$(Q)$(CXX) $(CPU_LINK) $@.o build/traced/runtime.o -o $@ $(linked)
build/gpu/%: tests/%.cu build/gpu/flags
	$(call say,NVCC)
	$(Q)$(GPU) $(DEPS) $< $(libraries) -o $@
# With no machine code at all, only PTX that is older than the GPU may be.
build/ptx/%: tests/%.cu build/gpu/flags
	@mkdir -p $(@D)
	$(call say,NVCC)
	$(Q)$(NVCC_BASE) -std=c++17 -gencode arch=compute_80,code=compute_80 $(DEPS) $< -o $@
# ... but for the kernel that goes before.
build/mixed/test_overlap: tests/test_overlap.cu tests/overlap_producer.cu build/gpu/flags
	@mkdir -p $(@D)
	$(call say,NVCC)
	$(Q)$(NVCC_BASE) -std=c++17 -gencode arch=compute_80,code=compute_80 $(DEPS) -DPRODUCER_ELSEWHERE -c $< -o $@.o
	$(Q)$(GPU) $@.o tests/overlap_producer.cu -o $@
build/gpu/%: examples/%.cu build/gpu/flags
	$(call say,NVCC)
	$(Q)$(GPU) $(DEPS) $< $(libraries) -o $@
# Compared where nvcc can link it, which not every toolkit has.
build/gpu/12_matmul: libraries = $(shell $(NVCC) -shared -x cu /dev/null -o build/gpu/cublas.so -lcublas 2>/dev/null && \
                       echo -DLESSON_CUBLAS -lcublas)
build/gpu/19_dynamic_parallelism: libraries = -rdc=true -lcudadevrt
# Beside what ARCH says, PTX for any GPU, which the lesson compares.
build/gpu/21_architectures: libraries = -gencode arch=compute_75,code=compute_75
# NCCL, too, is not everywhere: without it these say so, and do what one GPU can.
nccl = $(shell printf '%s\n' '#include <nccl.h>' 'int main() { int v; return ncclGetVersion(&v); }' | \
         $(NVCC) $(NVCCFLAGS) -x cu - -o build/gpu/nccl -lnccl 2>/dev/null && \
         echo -DLESSON_NCCL -DTEST_NCCL -lnccl || echo 'without NCCL: no nccl.h, or nothing to link' >&2)
$(addprefix build/gpu/,26_past_one_gpu test_ranks \
  test_dist test_dist_types test_dist_scan test_dist_scan_types): libraries = $(nccl)
# What only has to compile, of which the host's compiler makes no object (hence touch). Programs as users have them need
# not be without warnings.
build/built/%.o: rdc = $(if $(findstring dynamic,$<),-rdc=true)
build/built/%.o: $$(firstword $$(wildcard tests/$$*.cu examples/$$*.cu tests/programs/$$*.cu)) build/gpu/flags
	@mkdir -p $(@D)
	$(call say,NVCC)
	$(Q)$(if $(findstring programs,$<),$(NVCC) $(NVCCFLAGS),$(call no_object,$(NVCC_BASE)) -lineinfo) -std=c++17 \
	  $(call no_effort,$(call target,$(rdc))) $(call target,$(rdc)) $(rdc) \
	  $(if $(findstring test_dist,$<)$(findstring test_ranks,$<)$(findstring past_one,$<),$(filter -D%,$(nccl))) $(DEPS) -c $< -o $@
	@touch $@
$(bench_at)/%.o: tests/bench/%.cu $(bench_at)/flags
	$(call say,NVCC)
	$(Q)$(BENCH) $(DEPS) -c $< -o $@

# ---- plain CUDA, by way of C++ ---------------------------------------------------------------------------------------

# g++ and clang++ cannot parse <<<>>>: cuda_to_cpp rewrites it. Warnings of such programs are shown and no more.
PLAIN = $(CXX) $(CPU_FLAGS) -Wall -Wno-sign-compare -Wno-unknown-pragmas $(CXXFLAGS)
build/host/cuda_to_cpp: tests/cpu/cuda_to_cpp.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=c99 -pedantic -O2 $(WARNINGS) -Werror $< -o $@

build/cpu/%: tests/programs/%.cu build/host/cuda_to_cpp build/cpu/flags build/cpu/runtime.o $(wildcard tests/programs/*/*)
	$(call say,CXX)
	$(Q)build/host/cuda_to_cpp $< $@.cpp
	$(Q)$(PLAIN) -Og $(call runtime,cpu) $(DEPS) -iquote $(<D) $@.cpp -o $@ -ldl
build/asan/%: tests/programs/%.cu build/host/cuda_to_cpp build/asan/flags build/asan/runtime.o
	$(call say,ASAN)
	$(Q)build/host/cuda_to_cpp $< $@.cpp
	$(Q)$(CPU_ASAN) $(call runtime,asan) $(DEPS) -iquote $(<D) $@.cpp -o $@ -ldl
build/lesson/%: examples/%.cu build/host/cuda_to_cpp build/lesson/flags build/lesson/runtime.o
	$(call say,CXX)
	$(Q)build/host/cuda_to_cpp $< $@.cpp
	$(Q)$(CPU_LESSON) -DCUDA_CPU_ELSEWHERE $(DEPS) -iquote $(<D) -c $@.cpp -o $@.o
	$(Q)$(CXX) $(CPU_LINK) $@.o build/lesson/runtime.o -o $@ $(linked)
build/gpu/%: tests/programs/%.cu build/gpu/flags
	$(call say,NVCC)
	$(Q)$(NVCC) -O3 -std=c++17 -lineinfo $(if $(filter -%,$(ARCH)),$(ARCH),-arch=$(ARCH)) $(NVCCFLAGS) $(DEPS) $< -o $@

# The mistakes of README's table: one source, in each of the ways that find some of them.
mistakes := $(addprefix build/mistakes/,plain asan races)
build/mistakes/%.cpp: tests/mistakes/%.cu build/host/cuda_to_cpp
	@mkdir -p $(@D)
	$(Q)build/host/cuda_to_cpp $< $@
build/mistakes/plain: build/mistakes/mistakes.cpp build/cpu/flags build/cpu/runtime.o
	$(call say,CXX)
	$(Q)$(PLAIN) -Og $(call runtime,cpu) $(DEPS) $< -o $@ -ldl
build/mistakes/asan: build/mistakes/mistakes.cpp build/asan/flags build/asan/runtime.o
	$(call say,ASAN)
	$(Q)$(CPU_ASAN) $(call runtime,asan) $(DEPS) $< -o $@ -ldl
build/mistakes/races: build/mistakes/mistakes.cpp build/traced/flags build/traced/runtime.o
	$(call say,CXX)
	$(Q)$(PLAIN) -Og -g $(traced) -DCUDA_CPU_ELSEWHERE $(DEPS) -c $< -o $@.o
	$(Q)$(CXX) $(CPU_LINK) $@.o build/traced/runtime.o -o $@ $(linked)

# Names of files that a user gives reach the shell through the environment. They may contain spaces, quotes and dollar
# signs, so that neither make nor the shell may parse them. ARGS and BENCHFLAGS are parsed by the shell, as its words.
user_flags = $(if $(ASAN),-O1 -fsanitize=address$(comma)undefined,-O2) \
             $(if $(RACES)$(STATS),-g $(traced) $(if $(STATS),$(counted)))
cpu: export GIVEN_FILE = $(value FILE)
cpu: export GIVEN_STATS = $(value STATS)
user_kind = $(if $(ASAN),asan,$(if $(STATS),lesson,$(if $(RACES),traced,cpu)))
cpu: build/host/cuda_to_cpp build/$(user_kind)/runtime.o
	@[ "$$GIVEN_FILE" ] || { echo 'make cpu needs FILE=, a CUDA source: make cpu FILE=hw.cu' >&2; exit 1; }
	@[ -f "$$GIVEN_FILE" ] && [ -r "$$GIVEN_FILE" ] || \
	  { printf 'make cpu: %s is not there, or cannot be read\n' "$$GIVEN_FILE" >&2; exit 1; }
	$(if $(ASAN),$(if $(RACES)$(STATS),@echo 'make cpu: ASAN=1 goes with neither RACES=1 nor STATS=1' >&2; exit 1))
	@mkdir -p build/user
	@name=$${GIVEN_FILE##*/}; folder=$${GIVEN_FILE%"$$name"}; user=build/user/$${name%.*}; \
	  set -e$(if $(V),x); \
	  build/host/cuda_to_cpp "$$GIVEN_FILE" "$$user.cpp"; \
	  $(PLAIN) $(user_flags) -DCUDA_CPU_ELSEWHERE -iquote "$${folder:-./}" -c "$$user.cpp" -o "$$user.o"; \
	  $(CXX) $(if $(ASAN),-fsanitize=address$(comma)undefined) $(CPU_LINK) "$$user.o" build/$(user_kind)/runtime.o -o "$$user" \
	    $(if $(RACES)$(STATS),$(linked),-ldl); \
	  $(if $(STATS),GPUKIT_CPU_STATS="$$GIVEN_STATS") GPUKIT_CPU_LEAKS=$${GPUKIT_CPU_LEAKS-1} "$$user" $(ARGS)

# ---- run, examples, bench --------------------------------------------------------------------------------------------

run: export GIVEN_PHOTO = $(value PHOTO)
run: build/$(backend)/tour
	@$< $${GIVEN_PHOTO:+"$$GIVEN_PHOTO"}

lessons  := $(patsubst examples/%.cu,%,$(wildcard examples/[0-9]*.cu))
examples := $(filter-out $(lessons),$(patsubst examples/%.cu,%,$(wildcard examples/*.cu)))
traces   := test_races test_counters
tests    := $(filter-out $(traces),$(patsubst tests/%.cu,%,$(wildcard tests/test_*.cu)))
plain    := $(patsubst tests/programs/%.cu,%,$(wildcard tests/programs/*.cu))

lessons_at := $(if $(filter gpu,$(backend)),build/gpu,build/lesson)
examples: $(examples:%=build/$(backend)/%) $(lessons:%=$(lessons_at)/%)

.PHONY: $(lessons:%=lesson/%)
TABLES ?= build/lessons
lessons: $(lessons:%=lesson/%)
	@examples/charts/charts.sh build/lessons
charts: export GIVEN_TABLES = $(value TABLES)
charts:
	@examples/charts/charts.sh "$$GIVEN_TABLES"
$(lessons:%=lesson/%): lesson/%: $(lessons_at)/%
	@mkdir -p build/lessons
	@$(alone) $< --csv=build/lessons/$*.csv >build/lessons/$*.txt || { cat build/lessons/$*.txt; exit 1; }
	@cat build/lessons/$*.txt; echo

# To build here and run elsewhere.
gpu-binaries: $(tests:%=build/gpu/%) $(examples:%=build/gpu/%) $(lessons:%=build/gpu/%) $(plain:%=build/gpu/%)

bench_parts := $(patsubst tests/bench/%.cu,$(bench_at)/%.o,$(filter-out %/dist.cu,$(wildcard tests/bench/*.cu)))
$(bench_at)/bench: $(bench_parts)
	$(call say,LINK)
	$(Q)$(BENCH) $^ -o $@ -lcublas -lcublasLt

# To compare another copy of the header: NVCCFLAGS='-DGPUKIT_HEADER=\"other.cuh\"'.
COMMIT ?= $(or $(shell git describe --always --dirty --exclude='*' 2>/dev/null),unknown)
bench: $(if $(why_not),,$(bench_at)/bench)
	$(if $(why_not),@echo 'make bench needs nvcc and a GPU: $(why_not)' >&2; exit 1)
	@$< --commit='$(COMMIT)' $(BENCHFLAGS)

# The builds that are measured, each of them by a make of its own.
BUILDS ?= sm_90a sm_90 compute_80 compute_75
bench-binaries: $(BUILDS:%=bench-binary/%)
bench-binary/%: FORCE
	@$(MAKE) BUILD_FOR=$* build/bench-$*/bench

# What the bench does at its end, of two files; and what else there is to do with files of rows.
build/host/gate: tests/bench/gate.cpp
	@mkdir -p $(@D)
	$(call say,CXX)
	$(Q)$(CXX) -std=c++17 -O1 $(WARNINGS) -Werror $(CXXFLAGS) $(DEPS) $< -o $@
bench-gate: build/host/gate
	@$< $(GATEFLAGS)

# The planner is the header's own, on the stand-in.
build/cpu/refit: tests/bench/refit.cpp build/cpu/flags build/cpu/runtime.o
	$(call say,CXX)
	$(Q)$(CPU) $(call runtime,cpu) $(DEPS) $< -o $@ -ldl
DATA ?= $(wildcard tests/bench/plans-*.csv)
bench-refit: build/cpu/refit
	$(if $(DATA),,@echo 'make bench-refit needs DATA="FILE.csv ...", by BENCHFLAGS=--plan-times=FILE.csv' >&2; exit 1)
	@$< $(DATA)

# Several GPUs, and NCCL: past one GPU against one.
build/bench/dist: tests/bench/dist.cu build/bench/flags
	$(call say,NVCC)
	$(Q)$(GPU) $(DEPS) $< -DLESSON_NCCL -lnccl -o $@
bench-dist: $(if $(why_not),,build/bench/dist)
	$(if $(why_not),@echo 'make bench-dist needs nvcc, NCCL and a GPU: $(why_not)' >&2; exit 1)
	@$< $(BENCHFLAGS)

bench-compile:
	$(if $(has_nvcc),,@echo 'make bench-compile needs nvcc' >&2; exit 1)
	@NVCC='$(NVCC)' NVCCFLAGS='$(NVCCFLAGS)' COMMIT='$(COMMIT)' RUNS='$(RUNS)' ONLY='$(ONLY)' \
	  tests/bench/compile.sh $(if $(filter command line,$(origin CSV)),'$(CSV)')

CSV ?= tests/bench/h200-sm_90a.csv
plots: export GIVEN_CSV = $(value CSV)
plots:
	@tests/bench/plots.sh "$$GIVEN_CSV" build/plots

# ---- test ------------------------------------------------------------------------------------------------------------

# Each check is a target check/NAME that leaves its counts in build/results/NAME. One that cannot be built leaves none,
# which counts as a failure: hence the second make, whose -k goes on after failures, and then the sum.

# Every type there is takes long to compile, and tells little that a few types do not: test-all alone has these.
rare     := test_reduce_types test_dist_types test_dist_scan_types test_typed
in_all   := $(if $(filter test-all,$(MAKECMDGOALS))$(ALL),yes)
wanted   := $(if $(TESTS),$(TESTS:tests/%.cu=%),$(filter-out $(if $(in_all),,$(rare)),$(tests)) $(traces))
programs := $(filter-out $(traces),$(wanted))
about     = $(sort $(foreach topic,$1,$(foreach p,$(programs),$(if $(findstring $(topic),$p),$p))))

# On the stand-in, what could lean on the order of threads runs again in reverse and random order, and some of each
# section under AddressSanitizer and UBSan (which take long to compile). The kernels of all run under the race checker.
ptx := $(if $(filter gpu,$(backend)),$(foreach way,ptx mixed,$(addsuffix .$(way),$(call about,overlap))))
ifeq ($(backend),cpu)
  in_reverse     := bits
  in_random      := test_scan cooperative fuzz
  under_asan     := host error image memory
  plain_asan     := reduction.asan
  plain_reversed := $(addsuffix .reversed,reduction matmul_tiled histogram warp_sum)
  traced_alone   := $(filter $(traces),$(wanted))
  ifneq ($(in_all),)
    in_reverse   := warp block reduce scan matmul bits cooperative
    in_random    := warp scan cooperative fuzz load
    under_asan   += bits warp texture cooperative fuzz
    traced_too   := $(addsuffix .races,$(call about,warp block reduce scan matmul tensor bits index cooperative))
  endif
  reversed := $(addsuffix .reversed,$(call about,$(in_reverse)))
  random   := $(addsuffix .random,$(call about,$(in_random)))
  asan     := $(addsuffix .asan,$(call about,$(under_asan)))
endif

# The cases of tests/compile/cases.mk, each a check by the stand-in's compiler or by nvcc.
include tests/compile/cases.mk
ifneq ($(in_all),)
  built := $(if $(filter cpu,$(backend)),$(addsuffix .built,$(tests) $(examples) $(lessons) $(plain)))
endif
# libFuzzer comes with clang, mostly.
CLANG   ?= clang
fuzzers := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
ifneq ($(in_all),)
  has_libfuzzer := $(shell echo 'int LLVMFuzzerTestOneInput(const char *x, unsigned long n); \
                             int LLVMFuzzerTestOneInput(const char *x, unsigned long n) { return x && !n; }' | \
                     $(CLANG) -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null && echo yes)
  fuzzed := $(if $(TESTS),,$(fuzzers))
endif
# Targets of little shared memory; optimised as users have it, which takes long.
checks_registers := $(if $(in_all),$(addprefix registers_,sm_75.nvcc sm_86.nvcc sm_89.nvcc sm_120.nvcc))
checks_link := $(linked_cpu:%=%.cpu) $(if $(has_nvcc),$(linked_nvcc:%=%.nvcc))
checks_all  := $(modes:%=all@%)
checks_made := $(refused_cpu:%=refused_%.cpu) macros.cpu names \
               $(if $(has_nvcc),$(refused_nvcc:%=refused_%.nvcc) $(symbols_nvcc:%=symbols_%.nvcc) macros.nvcc lean.nvcc \
                 $(checks_registers))
checks_drop_in := $(checks_link) $(checks_made) $(if $(has_nvcc),$(unlinkable:%=%.nvcc) $(checks_all) $(built),nvcc)
checks_plain := $(if $(TESTS),,$(plain) tour_pictures given_names cuda_to_cpp mistakes mutations readme_cmake \
                  readme_notebook $(plain_reversed) $(plain_asan))
# What takes longest begins first, so that nothing is left at the end for one core alone.
longest     := $(if $(TESTS),,$(filter all@sm_90a+17,$(checks_drop_in))) $(traced_too)
checks      := $(longest) $(programs) $(if $(TESTS),,$(examples) $(lessons) $(filter-out $(longest),$(checks_drop_in))) \
               $(reversed) $(random) $(asan) $(traced_alone) $(checks_plain) $(ptx) $(fuzzed)

test test-all:
	@rm -rf build/results
	@$(MAKE) -k --output-sync checks BACKEND=$(backend) ALL=$(filter test-all,$@) || true
	@tests/run.sh total $(checks)

export CHECKS := $(words $(checks))
.PHONY: $(checks:%=check/%)
checks: $(checks:%=check/%)

# One program at a time has the GPU; the stand-in takes as many as there are jobs.
alone := $(if $(filter gpu,$(backend)),flock build/gpu)

# More than one of the stand-in's GPUs, where there is a lesson about that.
check/26_past_one_gpu lesson/26_past_one_gpu: export GPUKIT_CPU_DEVICES ?= 3

# All that the fuzz test is for, where there is time: on a GPU minutes.
check/test_fuzz: export GPUKIT_FUZZ_CASES ?= $(if $(ALL),$(if $(filter gpu,$(backend)),1000000))
check/test_fuzz: export TIMEOUT ?= $(if $(ALL),1200,300)
# Of products the race checker sees every kernel in a seventh of the cases, too.
check/test_matmul.races check/test_tensor.races: export GPUKIT_TEST_SLOWED = 1
check/test_load: export GPUKIT_SOAK_SECONDS ?= $(if $(ALL),$(if $(filter gpu,$(backend)),60))
check/test_fuzz.asan: export GPUKIT_FUZZ_CASES ?= 10000

$(programs:%=check/%): check/%: build/$(backend)/%
	@$(alone) tests/run.sh program $* $<
$(examples:%=check/%) $(plain:%=check/%): check/%: build/$(backend)/%
	@$(alone) tests/run.sh one $* $<
$(fuzzed:%=check/%): check/%: $(if $(has_libfuzzer),build/fuzz/%)
	@tests/run.sh $(if $(has_libfuzzer),one $* $(MAKE) fuzz/$* FUZZ_SECONDS=20,skip $* 1 'no clang with libFuzzer here')
check/readme_notebook: build/host/cuda_to_cpp
	@tests/run.sh one readme_notebook tests/compile/readme.sh notebook build/readme/notebook
no_cmake := $(if $(has_nvcc),$(if $(shell command -v cmake),,cmake is not here),nvcc is not here)
check/readme_cmake:
	@$(if $(no_cmake),tests/run.sh skip readme_cmake 1 '$(no_cmake)',RUN=$(if $(why_not),,1) NVCC='$(has_nvcc)' \
	  tests/run.sh one readme_cmake tests/compile/readme.sh cmake build/readme/cmake)
check/mutations:
	@tests/run.sh one mutations tests/mutate.sh fits
check/mistakes: $(mistakes)
	@tests/run.sh one mistakes tests/mistakes.sh $^
check/tour_pictures: build/$(backend)/tour
	@$(alone) tests/run.sh one tour_pictures tests/tour.sh $<
check/given_names: build/host/cuda_to_cpp build/$(backend)/tour
	@$(alone) tests/run.sh one given_names tests/given_names.sh $(backend)
$(lessons:%=check/%): check/%: $(lessons_at)/%
	@$(alone) tests/run.sh one $* tests/lesson.sh $<
check/cuda_to_cpp: build/host/cuda_to_cpp
	@tests/run.sh one cuda_to_cpp tests/cuda_to_cpp.sh $<
$(reversed:%=check/%): check/%.reversed: build/cpu/%
	@GPUKIT_CPU_SCHEDULE=reversed tests/run.sh program $*.reversed $<
$(random:%=check/%): check/%.random: build/cpu/%
	@GPUKIT_CPU_SCHEDULE=random:1 tests/run.sh program $*.random $<
$(asan:%=check/%): check/%.asan: build/asan/%
	@tests/run.sh program $*.asan $<
$(ptx:%=check/%): check/%: build/$$(subst .,,$$(suffix $$*))/$$(basename $$*)
	@$(alone) tests/run.sh program $* $<
$(traced_alone:%=check/%): check/%: build/traced/%
	@tests/run.sh program $* $<
$(traced_too:%=check/%): check/%.races: build/traced/%
	@TIMEOUT=900 GPUKIT_CPU_SCHEDULE=random:1 tests/run.sh program $*.races $<
$(plain_reversed:%=check/%): check/%.reversed: build/cpu/%
	@GPUKIT_CPU_SCHEDULE=reversed tests/run.sh one $*.reversed $<
$(plain_asan:%=check/%): check/%.asan: build/asan/%
	@tests/run.sh one $*.asan $<
# What is linked gets the number of its parts; without a GPU, that nvcc has linked it is the test.
parts_of = $(words $(filter part@% product@%,$(linked.$(basename $1))))
$(checks_link:%=check/%): check/%: build/compile/%
	@$(if $(filter %.nvcc,$*),$(alone)) tests/run.sh one $* $(if $(filter %.cpu,$*)$(alone),$< $(call parts_of,$*))
# Of code as users have it ptxas must not say that tensor cores wait, which with less effort they do.
$(checks_all:%=check/%): check/%: build/compile/%.nvcc.o
	@tests/run.sh one $* $(if $(filter all@sm_90a+17,$*),tests/compile/wgmma.sh $<.log build/compile/wgmma.o \
	  $(NVCC_BASE) -std=c++17 $(way.sm_90a.nvcc) -c tests/compile/wgmma.cu)
$(refused_cpu:%=check/refused_%.cpu): check/refused_%.cpu: $$(call to_link,$$*,cpu)
	@tests/run.sh one refused_$*.cpu tests/compile/refuse.sh '$(says.$*)' '$(lines.$*)' $(call refused_by,$*,cpu)
$(refused_nvcc:%=check/refused_%.nvcc): check/refused_%.nvcc: $$(call to_link,$$*,nvcc)
	@tests/run.sh one refused_$*.nvcc tests/compile/refuse.sh '$(says.$*)' \
	  '$(or $(lines.$*.nvcc),$(lines.$*))' $(call refused_by,$*,nvcc)
$(symbols_nvcc:%=check/symbols_%.nvcc): check/symbols_%.nvcc: $$(call objects,$$(wordlist 2,3,$$(symbols.$$*)),nvcc)
	@tests/run.sh one symbols_$*.nvcc tests/compile/symbols.sh $(firstword $(symbols.$*)) $^
check/names:
	@tests/run.sh one names tests/compile/names.sh
check/macros.cpu:
	@tests/run.sh one macros.cpu tests/compile/macros.sh $(CXX) $(CPU_FLAGS) -x c++ -E -dM
check/macros.nvcc:
	@tests/run.sh one macros.nvcc tests/compile/macros.sh $(NVCC) -I . -E -Xcompiler=-dM
check/lean.nvcc:
	@mkdir -p build/compile
	@tests/run.sh one lean.nvcc tests/compile/lean.sh build/compile/lean.o $(NVCC_BASE) -std=c++17 \
	  -gencode arch=compute_90a,code=sm_90a -c tests/bench/compile/called.cu
$(checks_registers:%=check/%): check/registers_%.nvcc:
	@tests/run.sh one registers_$*.nvcc tests/compile/registers.sh build/compile/registers_$* $(NVCC_BASE) -std=c++17 \
	  -arch=$*
$(built:%=check/%): check/%.built: build/built/%.o
	@tests/run.sh one $*.built
$(unlinkable:%=check/%.nvcc): check/%:
	@tests/run.sh skip $* 1 'this toolkit links no such program'
check/nvcc:
	@tests/run.sh skip nvcc $(words $(linked_nvcc) $(refused_nvcc) $(symbols_nvcc) $(modes)) '$(why_not)'

# Of an object's name FILE@WAY+WAY: its source, and the flags of its ways. $1 is the name, $2 the compiler: cpu or nvcc.
source    = $(filter %.c %.cpp %.cu,$(wildcard tests/compile/$(firstword $(subst @, ,$1)).*))
flags     = $(foreach way,$(subst +, ,$(word 2,$(subst @, ,$1))),$(way.$(way)) $(way.$(way).$2))
# The files of a case's objects, and of its shared libraries.
objects   = $(foreach o,$(filter-out -%,$1),build/compile/$(if $(filter %.so,$o),$(o:.so=.$2.so),$o.$2.o))

# nvcc itself tells where its headers are: the nvcc in the PATH may be a script that calls another.
toolkit   = $(shell $(NVCC) --dryrun -x cu -c /dev/null -o /dev/null 2>&1 | sed -n 's/^.. INCLUDES="-I\([^"]*\)".*/\1/p')
arch      = $(if $(filter -%,$(ARCH)),$(ARCH),-arch=$(ARCH))
# Without a GPU what is about no target is left as PTX, since ptxas takes a third of the time; but nvlink wants code.
target    = $(if $(alone)$(filter -rdc=true -G,$1),$(arch),$(patsubst -arch=sm_%,-arch=compute_%,$(arch)))
# Half the time, for what only has to compile; PTX alone need not be short for ptxas, either. Not for C++17, whose
# objects are to be as users have them, nor for what a GPU runs, nor where functions stay functions, which then need more
# registers than the kernels that call them have (of these modes one is enough). Where nobody links an object, the host's
# compiler reads the code, for errors and warnings, and makes none.
no_effort = -Xcicc $(if $(filter -arch=compute_% %code=compute_90a,$1),-O0,-O1) -Xptxas -O0
on_gpu    = $(if $(alone),$(if $(and $(filter -std=%,$1),$(filter -arch=% -gencode,$1)),,$1))
targeted  = $(if $(filter -arch=% -gencode,$1),,$(call target,$1))
quick     = $(if $(filter -std=c++17 -rdc=true -G,$1)$(on_gpu),,$(call no_effort,$(targeted) $1))
no_object = $(patsubst -O3,-O0,$1) -Xcompiler=-fsyntax-only
C99       = $(CC) -std=c99 -pedantic $(WARNINGS) -Werror -I .
# Not optimised by the stand-in's compiler: the linker merges no function that was inlined.
cpu.c     = $(C99) -I tests/cpu -I tests/cpu/stubs $1
cpu.cpp   = $(filter-out -rdynamic,$(CPU)) -O0 $1
cpu.cu    = $(cpu.cpp) -x c++
nvcc.c    = $(C99) -isystem '$(toolkit)' $1
nvcc.cpp  = $(CXX) -std=c++11 $(WARNINGS) -Werror -I . -isystem '$(toolkit)' $1
nvcc.cu   = $(NVCC_BASE) $(if $(filter -std=%,$1),,-std=c++17) $(targeted) $(call quick,$1) $1
compiler  = $(call $2$(suffix $(call source,$1)),$(call flags,$1,$2))
# Whose symbols are compared, and what a GPU runs, is as users have it on the host, too; the typed functions of the C API
# take half a minute that way.
compile   = $(if $(filter all@%,$1),$(call no_object,$(compiler)),$(if \
              $(alone)$(filter part@%,$1),$(compiler),$(patsubst -O3,-O0,$(compiler)))) \
              $(if $(filter all@static+rdc all@lto,$1),$(call no_effort,)) \
              $(if $(filter -cubin,$(call flags,$1,$2)),,-c) $(call source,$1)
link.cpu  = $(CXX) $(CPU_LINK)
link.nvcc = $(NVCC) -Werror all-warnings $(arch)

# What is refused is the link, or the compilation where there is but one object.
to_link    = $(if $(word 2,$(refused.$1)),$(call objects,$(refused.$1),$2))
refused_by = $(if $(to_link),$(link.$2) $(to_link) -ldl,$(call compile,$(refused.$1),$2)) -o build/compile/refused_$1.$2

# Another version of the header: another number, and sums that are products.
build/compile/other/gpukit.cuh: gpukit.cuh
	@mkdir -p $(@D)
	$(Q)sed 's/\(define GPUKIT_VERSION_MINOR\) .*/\1 3/; s/gk__arithmetic<Acc>::add/gk__arithmetic<Acc>::mul/' $< >$@

# The macros around the header in macro_names.cu.
build/compile/macro_names@.cpu.o build/compile/macro_names@.nvcc.o: build/compile/macro_names_before.h
build/compile/macro_names_before.h: tests/compile/macro_names.sh
	@mkdir -p $(@D)
	$(Q)$< $(@D)

build/compile/%.cpu.o: $$(call source,$$*) build/compile/flags | build/compile/other/gpukit.cuh
	$(call say,CXX)
	$(Q)$(call compile,$*,cpu) $(DEPS) -o $@
build/compile/%.nvcc.o: $$(call source,$$*) build/compile/flags | build/compile/other/gpukit.cuh
	$(call say,NVCC)
	$(Q)$(call compile,$*,nvcc) $(DEPS) -o $@ >$@.log 2>&1 && touch $@ || { cat $@.log; exit 1; }
build/compile/%.cpu.so: build/compile/%.cpu.o
	$(Q)$(link.cpu) -shared $< -o $@
build/compile/%.nvcc.so: build/compile/%.nvcc.o
	$(Q)$(link.nvcc) -shared $< -o $@
build/compile/%.cpu: $$(call objects,$$(linked.$$*),cpu) tests/compile/cases.mk
	$(Q)$(link.cpu) $(filter -%,$(linked.$*)) $(filter %.o %.so,$^) -ldl -o $@
build/compile/%.nvcc: $$(call objects,$$(linked.$$*),nvcc) tests/compile/cases.mk
	$(Q)$(link.nvcc) $(filter -%,$(linked.$*)) $(filter %.o %.so,$^) -o $@

# ---- fuzz, coverage, mutate ------------------------------------------------------------------------------------------

FUZZ_SECONDS ?= 60
build/fuzz/%: tests/fuzz/%.c examples/image.h tests/cpu/cuda_to_cpp.c
	@mkdir -p $@.corpus
	$(call say,FUZZ)
	$(Q)$(CLANG) -std=c99 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(WARNINGS) $< -o $@
# What a run finds new stays in build/fuzz, for the next one. One that fails leaves the bytes it failed on there.
fuzz/%: build/fuzz/%
	@echo '  FUZZ  $* for $(FUZZ_SECONDS) s'
	@$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -max_len=2000 -verbosity=0 -print_final_stats=1 \
	  -artifact_prefix=$<- $<.corpus $(<:build/fuzz/fuzz_%=tests/fuzz/%) $(if $(findstring cuda,$<),tests/programs) \
	  >$<.log 2>&1 || { grep -v '# Uses:' $<.log; exit 1; }; sed -n 's/^stat::number_of_executed_units/$*: inputs/p' $<.log
fuzz: $(if $(shell command -v $(CLANG)),$(fuzzers:%=fuzz/%))
	$(if $^,,@echo 'make fuzz needs clang with libFuzzer: $(CLANG) is not here' >&2; exit 1)

# Of the tests that are about the header. Hardly anything is optimised or inlined, so that each line is a line.
covered     := $(filter-out test_standin% test_texture test_cooperative test_image,$(tests))
CPU_COVERED  = $(CXX) -Og -fno-inline $(CPU_FLAGS) -w --coverage -fprofile-abs-path $(CXXFLAGS)
tools_coverage = $(CPU_COVERED)
build/coverage/%: tests/%.cu build/coverage/flags
	$(call say,CXX)
	$(Q)$(CPU_COVERED) $(DEPS) -x c++ $< -o $@ -ldl
coverage: $(covered:%=build/coverage/%)
	@tests/coverage.sh build/coverage $^

mutate:
	@CXX='$(CXX)' FLAGS='$(CPU_FLAGS) $(CXXFLAGS)' TRACED='-g $(traced)' LINKED='$(linked)' \
	  $(if $(why_not),,GPU='$(NVCC) -O3 -std=c++17 $(NVCCFLAGS)' GPU_ARCH='$(arch)' GPU_NCCL='$(if $(word 2,$(caps)),$(nccl))') \
	  tests/mutate.sh $(MUTATIONS)

same-code:
	$(if $(OLD),,@echo 'make same-code needs OLD=, a commit: make same-code OLD=HEAD~1' >&2; exit 2)
	@NVCC='$(NVCC)' NVCCFLAGS='$(NVCCFLAGS)' tests/same_code.sh $(if $(QUICK),-q) '$(OLD)' $(if $(NEW),'$(NEW)')

SANITIZER ?= $(shell PATH="$$PATH:/usr/local/cuda/bin" command -v compute-sanitizer)
SANITIZE  ?= $(tests) tour $(lessons)
sanitized := $(if $(why_not)$(if $(SANITIZER),,no),,$(SANITIZE:%=build/gpu/%))
.PHONY: sanitize
sanitize: $(sanitized)
	$(if $(sanitized),,@echo 'make sanitize needs nvcc, a GPU and compute-sanitizer: $(or $(why_not),no such tool here)' \
	  >&2; exit 1)
	@SANITIZER='$(SANITIZER)' tests/sanitize.sh $^

# ---- format, clean ---------------------------------------------------------------------------------------------------

sources = gpukit.cuh $(shell find examples tests -name '*.cu' -o -name '*.cuh' -o -name '*.h' -o -name '*.c' \
            -o -name '*.cpp')
ifneq ($(filter format check-format,$(MAKECMDGOALS)),)
  $(if $(shell command -v $(CLANG_FORMAT)),,$(error there is no $(CLANG_FORMAT); on Debian: apt-get install clang-format))
endif

format:
	$(Q)$(CLANG_FORMAT) -i $(sources)

check-format:
	@bad=$$(for f in $(sources); do $(CLANG_FORMAT) $$f | cmp -s - $$f || echo "  $$f"; done); \
	if [ -n "$$bad" ]; then echo "not formatted (make format):"; echo "$$bad"; exit 1; fi

clean:
	rm -rf build
