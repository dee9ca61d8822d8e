#include "textflag.h"

// func sum8(a, b *float32, n int, sums *[8]float32)
//
// Eight sums side by side, as in dot: lane i adds the products at 8k+i, in order.
TEXT ·sum8(SB), NOSPLIT, $0-32
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	MOVQ   sums+24(FP), DX
	VXORPS Y0, Y0, Y0

by32:
	CMPQ    CX, $32
	JLT     by8
	VMOVUPS (SI), Y1
	VMOVUPS 32(SI), Y2
	VMOVUPS 64(SI), Y3
	VMOVUPS 96(SI), Y4
	VMULPS  (DI), Y1, Y1
	VMULPS  32(DI), Y2, Y2
	VMULPS  64(DI), Y3, Y3
	VMULPS  96(DI), Y4, Y4
	VADDPS  Y1, Y0, Y0
	VADDPS  Y2, Y0, Y0
	VADDPS  Y3, Y0, Y0
	VADDPS  Y4, Y0, Y0
	ADDQ    $128, SI
	ADDQ    $128, DI
	SUBQ    $32, CX
	JMP     by32

by8:
	CMPQ    CX, $8
	JLT     done
	VMOVUPS (SI), Y1
	VMULPS  (DI), Y1, Y1
	VADDPS  Y1, Y0, Y0
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JMP     by8

done:
	VMOVUPS    Y0, (DX)
	VZEROUPPER
	RET
