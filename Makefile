# gpukit. `make` alone lists what there is to do: the lines below that begin with #: are what it prints.
#:
#: Where, and by which tools:
#:   BACKEND=gpu    builds with nvcc and runs on the GPU
#:   BACKEND=cpu    builds with g++ or clang++ and runs on the stand-in for CUDA in tests/cpu
#:   BACKEND=auto   the first if nvcc and a GPU are there, otherwise the second (default)
#:   ARCH=sm_90a    what nvcc builds for; or flags, as in ARCH='-gencode arch=compute_90a,code=sm_90a'
#:   BUILD=FOLDER   where all results go (default build), so that the sources may be read-only
#:   CXX= CC= NVCC= CLANG= CLANG_FORMAT= GCOV=   other tools  CXXFLAGS= NVCCFLAGS=   further flags  V=1   shows commands
#: It needs GNU make and a C++17 compiler, and CUDA only for a GPU. All cores are used unless -j says otherwise.
BACKEND      ?= auto
BUILD        ?= build
NVCC         ?= $(shell PATH="$$PATH:/usr/local/cuda/bin" command -v nvcc)
CLANG        ?= clang
CLANG_FORMAT ?= clang-format
MAKEFLAGS    += --no-builtin-rules --no-print-directory $(if $(filter 0,$(MAKELEVEL)),-j$(shell \
                  getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))
.DELETE_ON_ERROR .SECONDARY:
help:
	@sed -n 's/^#: \{0,1\}//p' Makefile
.PHONY: FORCE help checks test-targets $(shell sed -n 's/^#: \([a-z-]*\) .*/\1/p' Makefile)

# A variable whose name is not above would change nothing. Makefiles that call this one may have their own.
known := COMMIT TIMEOUT GPUKIT_% CUDA_% $(shell sed -n '/^#:/p' Makefile | tr -c 'A-Z_=' '\n' | sed -n 's/=.*//p')
$(if $(filter 0,$(MAKELEVEL)),$(foreach v,$(filter-out $(known),$(.VARIABLES)),$(if $(filter command,$(origin $v)),\
  $(error There is no variable $v=: see make help))))

# ---- detection -------------------------------------------------------------------------------------------------------

# A container may have a GPU and no nvidia-smi; CUDA_VISIBLE_DEVICES may hide every GPU.
has_nvcc := $(if $(NVCC),$(shell command -v '$(NVCC)' 2>/dev/null))
has_gpu  := $(shell [ "$${CUDA_VISIBLE_DEVICES-0}" ] && [ "$${CUDA_VISIBLE_DEVICES-0}" != -1 ] || exit; \
              if command -v nvidia-smi >/dev/null; then nvidia-smi -L 2>/dev/null | grep '^GPU'; \
              else ls -d /dev/nvidia[0-9]* 2>/dev/null; fi)
why_not  := $(if $(has_nvcc),$(if $(has_gpu),,no GPU is here),nvcc is not here)
backend  := $(if $(filter auto,$(BACKEND)),$(if $(why_not),cpu,gpu),$(filter gpu cpu,$(BACKEND)))
$(if $(backend),,$(error BACKEND is auto, gpu or cpu, not '$(BACKEND)'))
either   := $(filter run test test-all examples lessons coverage,$(MAKECMDGOALS))
for_gpu  := $(strip $(filter bench bench-dist sanitize,$(MAKECMDGOALS)) $(if $(filter gpu,$(BACKEND)),$(either)))
$(if $(filter auto,$(BACKEND)),$(if $(either),$(if $(why_not),$(if $(MAKE_RESTARTS),,$(info On the CPU stand-in: $(why_not).)))))
$(if $(for_gpu),$(if $(why_not),$(error make $(for_gpu) needs nvcc and a GPU: $(why_not))))
# Without a GPU: the oldest target, whose PTX the driver of any newer one takes. With one: what it is; but Hopper's own
# instructions are in code for sm_90a alone, which native is not.
caps     := $(if $(has_gpu),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null))
ARCH     ?= $(if $(has_gpu),$(if $(filter-out 9.0,$(caps)),native,$(if $(caps),sm_90a,native)),sm_75)
# nvcc 13 makes PTX of compute_90, too, for -arch=sm_90a, which takes as long again.
arch     := $(if $(filter -%,$(ARCH)),$(ARCH),-arch=$(ARCH:sm_%a=compute_%a -code=$(ARCH)))
ptx      := $(if $(filter -%,$(ARCH)),$(ARCH),-arch=$(ARCH:sm_%=compute_%))
# With -mfma fmaf() is one instruction, not a call. Contraction would give other bits than the sources spell out.
target   := $(shell $(CXX) -dumpmachine)
has_fma  := { cat /proc/cpuinfo || sysctl -n machdep.cpu.features; } 2>/dev/null | grep -qiw fma
fma      := $(if $(findstring x86_64,$(target)),$(shell $(has_fma) && echo -mfma))
clang    := $(findstring clang,$(shell $(CXX) --version 2>/dev/null))

# ---- how to build ----------------------------------------------------------------------------------------------------

# Every build is BUILD/CONFIGURATION/NAME, by tests/build.sh and the commands in BUILD/CONFIGURATION/flags. These are
# compile.CONFIGURATION and so on; tests/build.sh says what is what.
# DWARF 4: addr2line of binutils 2.40 takes the first file of DWARF 5's table for another one.
WARNINGS := -Wall -Wextra -Wshadow -Wconversion
STRICT   := $(WARNINGS) -Werror
AS_NVCC  := $(if $(clang),,-Wno-maybe-uninitialized) -Wformat -Wreturn-type -Wuninitialized -Wunused-variable \
              -Wunused-but-set-variable -Wno-parentheses -Wno-comment -Wno-empty-body
STANDIN  := -I tests/cpu -I tests/cpu/stubs
# The flags of one program (make cpu) do not rebuild the stand-in's part of all.
EXTRA    := $(if $(filter cpu,$(MAKECMDGOALS)),,$(CXXFLAGS))
CPU_FLAGS = -std=c++17 -gdwarf-4 -g1 $(fma) -ffp-contract=off -fno-finite-loops $(STANDIN) -I . -pthread $(EXTRA)
CPU_LINK  = $(CXX) -pthread -rdynamic $(EXTRA)
asan     := -fsanitize=address,undefined -fno-sanitize-recover=all
# The race checker and the counters see each access by what -fsanitize=thread makes the compiler call, and are linked
# instead of ThreadSanitizer's own library (hence no -fsanitize=thread there).
traced   := -fsanitize=thread $(if $(clang),-mllvm -tsan-distinguish-volatile=1 \
              -mllvm -tsan-instrument-read-before-write=1,--param tsan-distinguish-volatile=1 -fno-tree-sra -Wno-tsan)
counted  := -fsanitize-coverage=trace-pc
catching := $(if $(findstring apple,$(target)),,-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset) -ldl
# Local variables of users that are not initialised do not happen to be 0 (g++ 12 or newer, and clang++).
patterned = $(shell $(CXX) -ftrivial-auto-var-init=pattern -E -x c++ /dev/null >/dev/null 2>&1 && \
              echo -ftrivial-auto-var-init=pattern)
# The stand-in: tests take longer to compile than to run, the tour does not. Lines of inlined functions take -g, and a
# third of the time again: the tests of the race checker itself have it.
compile.cpu      = $(CXX) -Og $(CPU_FLAGS) $(STRICT) -x c++
compile.fast     = $(CXX) -O2 $(CPU_FLAGS) $(STRICT) -x c++
compile.plain    = $(CXX) -Og $(CPU_FLAGS) -Wall -Wno-sign-compare -Wno-unknown-pragmas -x c++
compile.asan     = $(CXX) -Og $(CPU_FLAGS) -w $(asan) -x c++
compile.traced   = $(CXX) -Og $(CPU_FLAGS) -w $(traced) -DTEST_FEW_TYPES -x c++
compile.checker  = $(CXX) -Og $(CPU_FLAGS) -w -g $(traced) -x c++
compile.counters = $(CXX) -Og $(CPU_FLAGS) -w -g $(traced) $(counted) -x c++
compile.lesson   = $(CXX) -Og $(CPU_FLAGS) -Wall -Wno-unknown-pragmas $(traced) $(counted) -x c++
compile.coverage = $(CXX) -Og -fno-inline $(CPU_FLAGS) -w --coverage -fprofile-abs-path -x c++
compile.user     = $(CXX) $(CPU_FLAGS) -g $(AS_NVCC) $(patterned) $(if $(ASAN),-O1 $(asan),-O2) \
                     $(if $(RACES)$(STATS),$(traced)) $(if $(STATS),$(counted)) -x c++
plain.user       = $(CC) -O2 -gdwarf-4 -g1 $(STANDIN) -I . -pthread $(AS_NVCC) $(if $(ASAN),$(asan)) # C beside it
# Where the program and the runtime both have the code of a function the one that is linked first wins: the better
# optimised one, but the program's own where accesses and branches are counted.
link             = $(link.$1)$(if $(findstring $(STANDIN),$(compile.$1)),$(CPU_LINK) $(filter -fsanitize=address% \
                     -fno-sanitize-recover% --coverage,$(compile.$1)) $(if $(findstring $(traced),$(compile.$1)),\
                     $$program $$runtime $(catching),$$runtime $$program -ldl) -o $$output)
# nvcc: for the GPU that is here; as PTX alone, which may be older than the GPU; as PTX with a kernel of machine code
# before; and what only has to compile, of which the host's compiler makes no object, and nvcc no code beside PTX.
NVCC_BASE        = $(NVCC) -O3 -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion -I . $(NVCCFLAGS)
compile.gpu      = $(NVCC_BASE) -std=c++17 -lineinfo $(arch)
plain.gpu        = $(NVCC) -O3 -std=c++17 -lineinfo $(arch) $(NVCCFLAGS)
compile.ptx      = $(NVCC_BASE) -std=c++17 -gencode arch=compute_80,code=compute_80
compile.mixed    = $(compile.ptx) -DPRODUCER_ELSEWHERE
link.mixed       = $(compile.gpu) $$program tests/arrays/overlap_producer.cu -o $$output
compile.built    = $(patsubst -O3,-O0,$(NVCC_BASE)) -Xcompiler=-fsyntax-only -std=c++17 -DTEST_FEW_TYPES $(quick)
plain.built      = $(NVCC) $(NVCCFLAGS) -std=c++17 $(quick)
quick            = -Xcicc -O0 -Xptxas -O0 $(ptx)
compile.host     = $(CC) -std=c99 -pedantic -O2 $(STRICT)
compile.fuzz     = $(CLANG) -std=c99 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(WARNINGS)
build = @tests/build.sh $@ $< $(filter %.o,$^) $(needs)
export BUILD V GROUP backend alone
settings = $(settings.$1) 'compile $(compile.$1)' 'plain $(plain.$1)' 'link $(call link,$1)'
# Other tools or flags than last time rebuild all of a configuration (several makes may run at the same time) ...
$(BUILD)/%/flags: FORCE
	@mkdir -p $(@D)
	@new=$@.$$$$ && printf '%s\n' $(call settings,$*) >$$new && if cmp -s $$new $@; then rm $$new; else mv $$new $@; fi
# ... and an edited header what includes it. Older makes look for a way to make these files.
-include $(wildcard $(BUILD)/*/*.d)
%.d: ;
$(BUILD)/%/runtime.o: tests/cpu/cuda_runtime.h $(BUILD)/%/flags
	$(build)
$(BUILD)/%/products.o: tests/support/products.cu $(BUILD)/%/flags
	$(build)
$(BUILD)/host/cuda_to_cpp: tests/cpu/cuda_to_cpp.c $(BUILD)/host/flags
	$(build)

# ---- what there is to do ---------------------------------------------------------------------------------------------
# The rules of all programs and checks, which tests/checks.sh makes of the tables.
apart := help cpu charts plots bench-compile test-ports format check-format clean
include $(if $(filter-out $(apart),$(or $(MAKECMDGOALS),help)),$(BUILD)/checks.$(backend).mk)
$(BUILD)/checks.%.mk: tests/checks.sh tests/checks.txt tests/compile/cases.txt $(BUILD)/tools/flags
	@tests/checks.sh $* $(if $(has_nvcc),'$(NVCC)' $(NVCCS)) >$@.$$$$ && mv $@.$$$$ $@
settings.tools = '$(has_nvcc) $(NVCCS) $(wildcard examples/*.cu tests/standin/programs/*.cu tests/lessons/prototypes/*.cu)'
#:
#: run           takes a photograph through the library, into build/tour (PHOTO=mine.ppm: another one)
# Names of files that a user gives reach the shell through the environment: they may contain spaces, quotes and dollar
# signs, so neither make nor the shell may parse them. ARGS and BENCHFLAGS are words, as a shell reads them.
export GIVEN_FILE = $(value FILE)
export GIVEN_PHOTO = $(value PHOTO)
export GIVEN_CXXFLAGS = $(CXXFLAGS)
export GIVEN_LDLIBS = $(value LDLIBS)
export GIVEN_TABLES = $(value TABLES)
export GIVEN_CSV = $(value CSV)
at := $(if $(filter gpu,$(backend)),gpu,fast)
alone := $(if $(filter gpu,$(backend)),$(shell command -v flock >/dev/null && echo flock $(BUILD)))
run: $(BUILD)/$(at)/tour
	@$< $${GIVEN_PHOTO:+"$$GIVEN_PHOTO"}
#: cpu           runs any CUDA program without a GPU: make cpu FILE=hw.cu [ARGS="..."] [ASAN=1] [RACES=1] [STATS=1]
#:               (FILE="main.cu part.cu" LDLIBS=-lm STD=c++20 CXXFLAGS=-fopenmp; it runs in the folder of main.cu)
$(foreach v,ASAN RACES STATS,$(if $(filter 0,$($v)),$(eval override $v :=)))
user_as := $(if $(ASAN),asan,$(if $(STATS),lesson,$(if $(RACES),traced,fast)))
cpu: $(BUILD)/host/cuda_to_cpp $(BUILD)/user/flags $(BUILD)/$(user_as)/runtime.o
	@tests/standin/user.sh '$(ASAN)' '$(RACES)$(STATS)' $(BUILD)/$(user_as)/runtime.o $(ARGS)
#: examples      builds all of examples/
examples: $(examples:%=$(BUILD)/$(at)/%) $(lessons:%=$(BUILD)/$(at:fast=lesson)/%)
#: lessons       runs the numbered ones, with tables as text, CSV and charts (by gnuplot) into build/lessons/
#: lesson/NAME   one of them: make lesson/03_vector_add
lessons: $(lessons:%=lesson/%)
	@examples/charts/charts.sh $(BUILD)/lessons
lesson/25_several_gpus lesson/26_past_one_gpu: export GPUKIT_CPU_DEVICES ?= 3
$(lessons:%=lesson/%): lesson/%: $(BUILD)/$(at:fast=lesson)/%
	@mkdir -p $(BUILD)/lessons
	@$(alone) $< --csv=$(BUILD)/lessons/$*.csv >$(BUILD)/lessons/$*.txt; status=$$?; \
	cat $(BUILD)/lessons/$*.txt; echo; exit $$status
#: charts        draws the tables of lessons again, those in build/lessons/ or in TABLES=FOLDER
charts:
	@examples/charts/charts.sh "$${GIVEN_TABLES:-$(BUILD)/lessons}"
#: gpu-binaries  builds tests and examples for a GPU that is elsewhere
gpu-binaries: $(addprefix $(BUILD)/gpu/,$(tests) $(examples) $(lessons) $(programs))

#:
#: test          the tests and compile checks (TESTS=tests/arrays/test_scan.cu: only that)
#: test-all      all of them: with every type, target, C++ standard, schedule and sanitizer, too
#: test-ports    other compilers and targets: clang++, further GPUs, and what is cross-compiled and emulated
#:               (NVCCS="/usr/local/cuda-12.0/bin/nvcc ...": further ones for the drop-in cases of test-all)
#: check/NAME    one of them; `make checks` lists their names. A new test is a file and a line in tests/checks.txt; a
#:               new way to drop the header into a program is a line in tests/compile/cases.txt. Both say how
wanted = $(filter $(if $(TESTS),$(foreach test,$(basename $(notdir $(TESTS))),$(test) $(test).%),%),$(checks.$1))
checks:
	@printf '%s\n' $(checks.test-all) $(checks.test-targets)
test-ports:
	@tests/ports.sh
test test-all test-targets:
	@tests/check.sh begin $(call wanted,$@)
	@$(MAKE) -k $(if $(filter output-sync,$(.FEATURES)),--output-sync) GROUP=$@ BACKEND=$(backend) \
	  $(addprefix check/,$(call wanted,$@)) || true
	@tests/check.sh total
# The drop-in cases, by tests/compile/drop_in.sh.
settings.compile = 'c $(CC) -std=c99 -pedantic $(STRICT) -I .' 'cpp $(CXX) -std=c++11 $(STRICT) -I .' \
  'cpu $(CXX) -O0 $(CPU_FLAGS) $(STRICT) -I $(BUILD)/compile -DCUDA_CPU_ELSEWHERE' 'link $(CPU_LINK)' 'cxx $(CXX)' \
  'nvcc $(NVCC_BASE) -I $(BUILD)/compile' 'nvcc_is $(NVCC)' 'nvccs $(NVCCS)' 'arch $(arch)' 'ptx $(ptx)' \
  'standin $(STANDIN)' 'backend $(backend)' "$$(grep '^way ' tests/compile/cases.txt)" \
  'clang_cuda clang++ -x cuda -std=c++17 -I . --cuda-gpu-arch=sm_75 --cuda-path=$(NVCC:/bin/nvcc=)' \
  'clang_cpu clang++ -fsyntax-only -I tests/support $(CPU_FLAGS) $(STRICT) -x c++'
$(BUILD)/compile/%.o: $(BUILD)/compile/flags | $(BUILD)/compile/headers
	@tests/compile/drop_in.sh object $@
$(BUILD)/compile/%.so: $(BUILD)/compile/%.o
	@tests/compile/drop_in.sh link $@ $<
$(BUILD)/compile/headers: gpukit.cuh tests/compile/headers.sh
	@tests/compile/headers.sh $(@D)
$(BUILD)/compile/other/gpukit.cuh $(BUILD)/compile/macro_names_before.h: $(BUILD)/compile/headers ;
#: fuzz          feeds any bytes to the picture reader and to cuda_to_cpp (needs clang; FUZZ_SECONDS=60 for each)
fuzz: $(BUILD)/fuzz/flags
	@for what in image cuda_to_cpp; do tests/fuzz/fuzz.sh $$what $(or $(FUZZ_SECONDS),60) || exit 1; done
#: coverage      lines of gpukit.cuh that no test runs on the CPU, or launches on a GPU, for each ARCH= called so far
coverage: $(covered:%=$(BUILD)/$(at:fast=coverage)/%)
	@tests/tools/coverage.sh $(BUILD)/coverage $(if $(filter gpu,$(at)),$$(echo '$(ARCH)' | sed 's/.*arch=//; s/,.*//'),cpu) $^
#: mutate        breaks gpukit.cuh in many ways, and shows which break no test notices (MUTATIONS=name: only those)
mutate: $(addprefix $(BUILD)/,cpu/flags checker/flags gpu/flags mixed/flags)
	@GPU=$(if $(why_not),,yes) SEVERAL=$(word 2,$(caps)) tests/tools/mutate.sh $(MUTATIONS)
#: same-code     lists the kernels whose machine code is not that of another commit: make same-code OLD=HEAD~1
#:               (NEW=COMMIT: against that, not the working tree; QUICK=1: fewer kernels; needs nvcc, but no GPU)
same-code:
	@NVCC='$(NVCC)' NVCCFLAGS='$(NVCCFLAGS)' tests/tools/same_code.sh $(if $(QUICK),-q) '$(OLD)' $(if $(NEW),'$(NEW)')
#: sanitize      tests and lessons on a GPU under the tools of compute-sanitizer (SANITIZE=test_scan: only that)
sanitize: $(addprefix $(BUILD)/gpu/,$(or $(SANITIZE),$(tests) tour $(lessons)))
	@tests/tools/sanitize.sh $^
#:
#: bench         measures against CUB, cuBLAS and the memory ceiling (needs a GPU); BENCHFLAGS=--help: how;
#:               ARCH=sm_90a, sm_90, compute_80 (PTX for the driver to compile), ...: which code is measured.
#:               NVCCFLAGS='-DGPUKIT_HEADER=\"other.cuh\"': another copy of the header
COMMIT    ?= $(or $(shell git describe --always --dirty --exclude='*' 2>/dev/null),unknown)
built_for := $(if $(filter -%,$(ARCH)),flags,$(ARCH))
bench_at  := $(BUILD)/bench-$(built_for)
compile.bench-$(built_for) = $(NVCC_BASE) -std=c++17 -DBENCH_BUILD=\"$(built_for)\" $(arch)
$(bench_at)/%.o: tests/bench/%.cu $(bench_at)/flags
	$(build)
$(bench_at)/bench: $(patsubst tests/bench/%.cu,$(bench_at)/%.o,$(filter-out %/dist.cu tests/bench/test_%,\
                    $(wildcard tests/bench/*.cu)))
	@$(compile.bench-$(built_for)) $^ -o $@ -lcublas -lcublasLt
bench: $(bench_at)/bench
	@$< --commit='$(COMMIT)' $(BENCHFLAGS)
#: bench-binaries builds it for each of BUILDS="sm_90a sm_90 compute_80 compute_75"
bench-binaries:
	@for code in $(or $(BUILDS),sm_90a sm_90 compute_80 compute_75); do \
	  $(MAKE) ARCH=$$code $(BUILD)/bench-$$code/bench || exit 1; done
#: bench-gate    compares files of the bench, without a GPU: GATEFLAGS=--help: how
bench-gate: $(BUILD)/fast/gate
	@$< $(GATEFLAGS)
#: bench-refit   fits the costs by which products are planned to times of the bench, without a GPU, and prints the
#:               table and what its choices lose (needs DATA="FILE.csv ...", made by BENCHFLAGS=--plan-times=FILE.csv)
bench-refit: $(BUILD)/fast/refit
	@$< $(or $(DATA),$(wildcard tests/bench/plans-*.csv))
#: bench-dist    measures what working together costs several GPUs (needs NCCL; flags: see tests/bench/dist.cu)
bench-dist: $(BUILD)/gpu/dist
	@$< $(BENCHFLAGS)
#: bench-compile measures compile times and objects: a bare .cu, with gpukit, with CUB (needs nvcc, but no GPU;
#:               RUNS=5 ONLY="scan matmul" CSV=FILE)
bench-compile:
	@NVCC='$(NVCC)' NVCCFLAGS='$(NVCCFLAGS)' COMMIT='$(COMMIT)' RUNS='$(RUNS)' ONLY='$(ONLY)' tests/bench/compile.sh \
	  $${GIVEN_CSV:+"$$GIVEN_CSV"}
#: plots         draws the results in tests/bench/h200-sm_90a.csv, or in CSV=FILE, into build/plots/ (needs gnuplot)
plots:
	@tests/bench/plots.sh "$${GIVEN_CSV:-tests/bench/h200-sm_90a.csv}" $(BUILD)/plots
#:
#: format        formats the sources
#: check-format  lists the sources that are not formatted, and fails if there are any
sources = gpukit.cuh $(shell find examples tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp')
format check-format:
	@command -v $(CLANG_FORMAT) >/dev/null || { echo 'clang-format is not here; on Debian: apt-get install it'; exit 1; }
	@bad=$$(for f in $(sources); do $(CLANG_FORMAT) $$f | cmp -s - $$f || echo "  $$f"; done); [ -n "$$bad" ] || exit 0; \
	if [ $@ = format ]; then $(CLANG_FORMAT) -i $$bad; else echo "not formatted (make format):"; echo "$$bad"; exit 1; fi
#: clean         removes build/
clean:
	rm -rf $(BUILD)
